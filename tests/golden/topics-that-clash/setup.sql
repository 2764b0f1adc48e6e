create database tc; use tc; create table `a b` (id int primary key, v int); insert into `a b` values (1,1);
