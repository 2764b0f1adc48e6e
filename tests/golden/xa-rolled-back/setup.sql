create database xr; use xr; create table t (id int primary key, v varchar(10)); create table u (id int primary key, v varchar(10)); insert into t values (1,'snap'),(2,'snap');
