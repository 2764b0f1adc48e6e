create database dm; use dm;
create table t (id int primary key, b bigint default 187063679863644046, d datetime(3));
insert into t values (1,null,'3858-07-19 01:02:03'),(2,1,'2000-01-01');
