use pc; insert into g select id+1,a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,r,s,t,u,v,w,x,y from g; update g set a='龍',e='' where id=2; delete from g where id=1;
create table n (id int primary key, `naïve` varchar(10) default 'Ж' comment '日本', en enum('α','β') charset greek default 'β') charset koi8r comment 'ж'; insert into n values (1,'Ж','α'); insert into n (id) values (2);
