-- wrk: each request is another event, signed before the run, because signing here would take a core from the server. All
-- requests have the same length and stand one after the other in a file.
local requests, size
local count = 0

function init(args)
  local file = assert(io.open(args[1], "rb"))
  requests = file:read("*a")
  file:close()
  size = tonumber(args[2])
end

function request()
  local from = count * size
  count = count + 1
  -- The last one may be sent again while the thread stops: it is a duplicate, and there are few.
  if from + 2 * size > #requests then
    count = count - 1
    wrk.thread:stop()
  end
  return string.sub(requests, from + 1, from + size)
end

function done(summary, latency)
  local errors = summary.errors
  io.write(string.format(
    '\nRESULT {"requests":%d,"micros":%d,"p50_us":%d,"p99_us":%d,"refused":%d,"broken":%d}\n',
    summary.requests, summary.duration, latency:percentile(50), latency:percentile(99), errors.status,
    errors.connect + errors.read + errors.write + errors.timeout
  ))
end
