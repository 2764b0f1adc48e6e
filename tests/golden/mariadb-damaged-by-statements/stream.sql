use dm; insert into t values (3,null,'1500-01-01 00:00:00'),(4,7,'2262-04-11 23:47:16.854');
create table u (id int primary key, n integer unsigned, m int unsigned); insert into u values (1,4000000000,4000000000),(2,5,5);
create table w (id int primary key); alter table w add column (x int not null default 1, y int); insert into w (id) values (3); update w set y=2 where id=3;
do sleep(4);
create table h (id int primary key, b blob, unique (b)); insert into h values (1,'one'),(2,null); delete from h where id=1;
