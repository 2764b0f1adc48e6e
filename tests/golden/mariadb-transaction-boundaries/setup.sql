create database mm; use mm; create table t (id int primary key, v varchar(10)); create table a (id int primary key) engine=Aria; insert into t values (1,'a');
