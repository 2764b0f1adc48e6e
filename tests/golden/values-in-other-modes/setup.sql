create database px; use px;
create table a (id bigint unsigned primary key auto_increment, n decimal(20,5) default 1.5, m decimal(65,30), v varbinary(20) default 'abc', b binary(4), e enum('x','y,z','q''r') default 'y,z', s set('a','b','c') default 'a,b', j json, dt datetime(3) default current_timestamp(3), d date default '2020-02-02', t time(2) default '10:11:12.13', f float default 1.25, g double(10,3) default 3.14, bt bit(10) default b'101', y year default 2020, txt text comment 'some text', c char(5) default 'ab' comment 'it''s') comment='T\'s';
insert into a (n,m,v,b,dt,j) values (1,2,'x','y','2020-01-01','{"a":[1,2.5,true,null,"\\u00e9"],"b":{"c":"d"}}'),(-1.00001,-99999999999999999999999999999999999.999999999999999999999999999999,x'00ff','zzzz','2020-01-01','[]');
create table b (a int, b int, c varchar(10), unique key u1 (a), unique key u2 (b,c));
insert into b values (1,2,'x'),(null,3,'y');
create table c (k1 varchar(10), k2 datetime(6), k3 decimal(10,2), primary key (k2,k1,k3)) charset latin1;
insert into c values ('é','2020-01-01 00:00:00.123456',1.10);
