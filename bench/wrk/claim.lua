-- wrk: each request is another buyer with another request id. One text of fixed length, put together by hand: wrk's own
-- formatting would take more of the two cores than the server does.
dofile(debug.getinfo(1, "S").source:match("^@(.*/)") .. "result.lua")

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
