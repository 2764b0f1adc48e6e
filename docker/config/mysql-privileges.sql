-- The privileges of rowtide's account, which the image creates: SELECT, RELOAD, LOCK TABLES and SHOW DATABASES for a
-- consistent snapshot, and those of a replica for the binlog.
GRANT SELECT, RELOAD, LOCK TABLES, SHOW DATABASES, REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO 'rowtide'@'%';
