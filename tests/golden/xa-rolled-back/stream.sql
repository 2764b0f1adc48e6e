use xr; insert into t values (3,'first');
xa start 'gone'; insert into t values (4,'gone'); update t set v='gone' where id=1; delete from t where id=2; insert into u values (4,'gone'); xa end 'gone'; xa prepare 'gone'; xa rollback 'gone';
insert into u values (5,'kept');
xa start 'kept','b',7; insert into t values (6,'xa'); update t set id=7 where id=3; insert into u values (6,'xa'); xa end 'kept','b',7; xa prepare 'kept','b',7; xa commit 'kept','b',7;
xa start 'one'; insert into u values (8,'one'); insert into t values (8,'one'); xa end 'one'; xa commit 'one' one phase;
xa start 'dropped'; insert into t values (9,'no'); xa end 'dropped'; xa rollback 'dropped';
begin; insert into t values (10,'plain'); insert into u values (10,'plain'); commit;
