create database dm; use dm;
create table t (id int primary key, b bigint default 187063679863644046, g datetime, d date);
insert into t values (1,null,'1582-10-10 01:02:03','1582-10-10'),(2,5,'1582-10-04 00:00:00','1582-10-15');
