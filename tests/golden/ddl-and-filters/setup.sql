create database pd character set latin1; use pd; create table t (id int primary key, v varchar(10), n int); insert into t values (1,'é',1); create table skip1 (a int);
