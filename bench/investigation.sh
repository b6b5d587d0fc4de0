# The shop has been slow since the morning: look at the host, at its services, then at the logs.
uptime; free -m; df -h / /var/lib /var/log
top -b -n 1 | head -n 20
ps -eo pid,ppid,user,%cpu,%mem,etime,args --sort=-%mem | head -n 15
ss -tlnp | grep -E ':(80|443|5432|8080) '

# Services under systemd: the web server, the application behind it, and the queue of its orders.
for unit in nginx.service shop-app.service shop-queue.service; do
  systemctl show -p Id,MainPID,NRestarts,ActiveState,ActiveEnterTimestamp "$unit"
done
systemctl --failed --no-pager --no-legend
docker ps --all --format 'table {{.Names}}\t{{.Status}}\t{{.Image}}' --filter name=shop
docker logs --since 30m --tail 200 shop-web 2>&1 | grep -c ' 502 ' || echo "no bad gateway in the last half hour"
docker inspect --format '{{.State.Health.Status}} {{.RestartCount}}' shop-web shop-queue

# What a customer sees.
if curl -fsS --max-time 5 http://127.0.0.1:8080/healthz > /dev/null 2>&1; then
  echo "the health page answers"
else
  curl -sS -o /dev/null -w '%{http_code} %{time_total}\n' --max-time 5 http://127.0.0.1:8080/healthz
fi
kubectl --namespace shop get pods --output wide
kubectl --namespace shop describe pod shop-worker-0 | tail -n 30
psql -h 127.0.0.1 -U shop -d shop -At -c "SELECT state, wait_event_type, count(*) FROM pg_stat_activity GROUP BY 1, 2"
ssh -o BatchMode=yes -o ConnectTimeout=5 db1.example.com 'df -h /var/lib/postgresql && sudo systemctl status postgresql'
timeout 10 dig +short shop.example.com @127.0.0.1
git -C /srv/shop log --oneline --since yesterday -n 5
git -C /srv/shop diff --stat HEAD~5 -- deploy/compose.yaml deploy/nginx/shop.conf
find /var/log/nginx -name '*.log' -size +100M -mtime -1
cat /proc/loadavg /proc/meminfo | head -n 8

# What the logs say most often.
journalctl -u shop-app --since '30 min ago' --no-pager | grep -iE 'error|timeout|refused' | sort | uniq -c | sort -rn
tail -n 400 /var/log/nginx/access.log | awk '{print $9}' | sort | uniq -c | sort -rn | head -n 5
