use nd; insert into t1 (id,n,bits,blb,ts) values (1,null,b'1010000000000000000000000001',0x010203,'2024-01-02 03:04:05.000006'),(2,7,null,null,'2024-01-02 03:04:05');
update t1 set n=7 where id=1; update t1 set n=7 where id=1; update t1 set n=null; update t1 set v=null; update t1 set v='x'; update t1 set bits=b'1' where id=2;
insert into t2 (id) values (1); insert into t2 values (2,null,0),(3,12345678901234567890123456789012345.012345678901234567890123456789,-0.0000000001);
alter table t1 add b binary not null, add j json not null, add g geometry, add c int comment ''; update t1 set c=1; update t1 set j='{"a": 1}', b='z' where id=1; insert into t1 (id,b,j) values (3,'','null');
flush binary logs; alter table t2 add x int not null default 3 comment ''; flush binary logs; insert into t2 (id) values (4); alter table t2 drop x;
alter table t1 alter n drop default, alter v drop default; update t1 set n=8 where id=1; update t1 set v='y' where id=1; delete from t1 where id=2;
