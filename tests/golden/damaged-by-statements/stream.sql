use dm; insert into t values (3,null,'1582-10-10 01:02:03','1582-10-10'); alter table t add v varchar(10) default 'x', alter b set default null; alter table t alter v set default null; insert into t (id) values (4);
create table u (id int primary key, v varchar(10)) character set latin1; alter table u default character set hebrew; alter table u add w varchar(10); insert into u values (1,'é','ב');
create table l (id int primary key, s set('a','日'), e enum('z','日')) character set ascii; insert into l values (1,'a,?','?'),(2,'a','z');
do sleep(4);
create table n (id int primary key, Name int, z int); insert into n values (1,2,3); alter table n modify Name int after z; insert into n values (2,3,4);
