-- wrk: each request is another event, signed before the run, because signing here would take a core from the server. All
-- requests have the same length and stand one after the other in a file.
dofile(debug.getinfo(1, "S").source:match("^@(.*/)") .. "result.lua")

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
