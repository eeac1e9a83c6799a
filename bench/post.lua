-- wrk: every request POSTs one event of its own, without an id; prints what the bench reads at the end.
local number = 100000000 -- always nine digits, so that every event has 360 bytes
local body = '{"type":"tool.result","source":"wrk","data":{"n":%d,"text":"' .. string.rep("x", 290) .. '"}}'
local headers = { ["content-type"] = "application/json" }

function request()
  number = number + 1
  return wrk.format("POST", nil, headers, string.format(body, number))
end

function done(summary, latency)
  local errors = summary.errors
  io.write(string.format('{"requests":%d,"seconds":%.6f,"refused":%d,"failed":%d,"p50_ms":%.3f,"p99_ms":%.3f}\n',
    summary.requests, summary.duration / 1e6, errors.status,
    errors.connect + errors.read + errors.write + errors.timeout,
    latency:percentile(50) / 1e3, latency:percentile(99) / 1e3))
end
