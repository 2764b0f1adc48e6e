create database pk; use pk; create table t_x (id int primary key, a int, b int, c varchar(5), d int, e int); insert into t_x values (1,1,1,'1',1,1);
create table t2 (id int auto_increment primary key, a int, b int not null, z int); insert into t2 values (1,1,1,1);
create table t3 (z int primary key, a int, b int); insert into t3 values (1,2,3);
create table t4 (a int, b int, c int, d int, unique (b), unique(a)); create table t5 (a int not null, b int not null, c int, unique k(b), unique j(a));
