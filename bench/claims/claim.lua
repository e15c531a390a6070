-- wrk: each request is another buyer with another request id. One text of fixed length, put together by hand: wrk's own
-- formatting would take more of the two cores than the server does.
local path, prefix
local count = 0

function init(args)
  path, prefix = args[1], args[2]
end

function request()
  count = count + 1
  local body = string.format('{"user_id":"user_%s_%012d","request_id":"order_%s_%012d"}', prefix, count, prefix, count)
  return string.format(
    "POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
    path, #body, body
  )
end

function done(summary, latency)
  local errors = summary.errors
  io.write(string.format(
    '\nRESULT {"requests":%d,"micros":%d,"p50_us":%d,"p99_us":%d,"refused":%d,"broken":%d}\n',
    summary.requests, summary.duration, latency:percentile(50), latency:percentile(99), errors.status,
    errors.connect + errors.read + errors.write + errors.timeout
  ))
end
