create database nd; use nd;
create table t1 (id int primary key, n int default 7, v varchar(10) default 'x', bits bit(28), blb blob, ts timestamp(6) not null default current_timestamp(6));
create table t2 (id int primary key, big decimal(65,30) default 0.5, neg decimal(38,10) not null default -1234567890123456789012345678.0123456789);
create table t3 (id int); create table T4 (a int, b int); create table zz (id int primary key);
