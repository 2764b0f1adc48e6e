use tr;
insert into t (id) values (3); insert into t values (4,'d','2024-07-01 12:30:00','2024-07-01 12:30:00','2024-07-01','-01:00:00',7,-3.25);
update t set v='x' where id=1; update t set id=10 where id=2; delete from t where id in (1,10); update u set txt='y'; delete from u; 
truncate t; alter table t add column z int; insert into t (id,z) values (5,1); begin; insert into u values (2,'b'); insert into t (id) values (6); commit;
