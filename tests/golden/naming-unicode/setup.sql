create database tr; use tr;
create table t (id int primary key, v varchar(10) default 'dflt', ts timestamp(3) null, dt datetime(6), d date, tm time(3), n int default 5, dec1 decimal(6,2));
create table u (id int, txt varchar(10));
insert into t values (1,'a','2024-01-01 00:00:00.123','2024-01-01 00:00:00.123456','2024-01-01','10:00:00.5',1,1.50),(2,null,null,null,null,null,null,null);
insert into u values (1,'x');
