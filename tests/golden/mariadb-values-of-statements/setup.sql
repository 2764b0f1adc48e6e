create database vs; use vs;
create table t1 (id int primary key, big decimal(65,30) unsigned default 0.5, ts timestamp(6) not null default current_timestamp(6), n int comment '');
create table t2 (id int primary key); create table zz (id int); create table T4 (id int);
