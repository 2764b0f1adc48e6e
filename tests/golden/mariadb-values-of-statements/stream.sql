use vs; insert into t1 (id) values (1); insert into t1 values (2,12345678901234567890123456789012345.5,'2024-01-02 03:04:05.6',null);
alter table t1 add b binary not null, add c int comment '', add d json; update t1 set c=1 where id=1; insert into t1 (id,b,d) values (3,'z','[]');
alter table t1 alter n drop default; insert into t2 values (1); flush binary logs; alter table t2 add x smallint not null default 3 comment 'x'; insert into t2 (id) values (2);
create table g (id int primary key, g geometry, m int default 5); insert into g values (1,null,null),(2,st_geomfromtext('POINT(1 2)'),5); truncate g; insert into g (id) values (3);
create table m (id int primary key) engine=myisam; begin; insert into t2 (id) values (10); savepoint s; insert into m values (1); insert into t2 (id) values (11); rollback to savepoint s; insert into t2 (id) values (12); commit;
