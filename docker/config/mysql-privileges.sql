-- What rowtide needs of MySQL, beyond the user that the image has made: to read the tables for the first time
-- (SELECT, RELOAD and LOCK TABLES for one consistent view, SHOW DATABASES), and to read the binlog like a replica.
GRANT SELECT, RELOAD, LOCK TABLES, SHOW DATABASES, REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO 'rowtide'@'%';
