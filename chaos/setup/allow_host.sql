insert into intake.webhook_allowed_hosts (host) values ($1) on conflict do nothing
