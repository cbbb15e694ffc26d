/** Steps of commits that Redis runs atomically, as part of the library of that name. */
export const commitFunctions = (library: string): string => stepFunction(library) + wholeFunction(library)

const stepFunction = (
  library: string,
): string => `-- Refuses an earlier owner at a place that is not the consumer's own.
local function overtaken(place, consumer, fence)
  local last = redis.call('HGET', place .. ':fences', consumer)
  if last and tonumber(last) > tonumber(fence) then return {'stale', '', last} end
end

-- Whether a later commit of this owner was here before: what was held up in the network is not to undo it.
local function is_late(place, consumer, fence, turn)
  local fences = place .. ':fences'
  local stored = redis.call('HMGET', fences, consumer, consumer .. '#')
  if stored[1] == fence and tonumber(stored[2] or '0') > tonumber(turn) then return true end
  if stored[1] ~= fence or stored[2] ~= turn then redis.call('HSET', fences, consumer, fence, consumer .. '#', turn) end
  return false
end

-- KEYS P, ARGV: consumer, fence, step (only first next last), is own place, from, at, token, turn of the commit among those
-- of its owner, then for each table generation and changes: a MessagePack array of id, ends, row ('' deletes), terms, each.
-- An id stands there once.
redis.register_function('${library}_commit', function(keys, args)
  local place, consumer, fence, step = keys[1], args[1], args[2], args[3]
  if consumer ~= '' then
    local stale
    if args[4] == '1' then
      stale = check(place, args[5], fence, args[6])
    else
      stale = overtaken(place, consumer, fence)
    end
    if stale then return stale end
    if is_late(place, consumer, fence, args[8]) then return {'late'} end
  end
  for i = 9, #args, 2 do if was_replaced(place .. ':' .. args[i] .. ':') then return {'replaced'} end end
  -- Who was kept waiting by the last commit of several steps reads before the next one begins.
  if step == 'first' and redis.call('EXISTS', place .. ':waiting') == 1 then return {'wait'} end
  if step == 'first' or step == 'next' then redis.call('SET', place .. ':busy', '1', 'PX', 5000) end
  for i = 9, #args, 2 do store(place .. ':' .. args[i] .. ':', cmsgpack.unpack(args[i + 1]), args[7]) end
  if #args > 8 then sweep(place .. ':' .. args[9] .. ':', 4, args[7]) end
  if step == 'last' then redis.call('DEL', place .. ':busy') end
  if args[4] == '1' and args[6] ~= '' and (step == 'only' or step == 'last') then
    redis.call('HSET', place .. ':consumer', 'at', args[6])
  end
  return {'ok'}
end)

`

const wholeFunction = (
  library: string,
): string => `-- KEYS P of the consumer, ARGV: consumer, fence, from, at, token, turn, then for each place, the consumer's first: its name,
-- number of tables, and for each of them generation and changes as above. A whole commit of several places of one server.
redis.register_function('${library}_commit_whole', function(keys, args)
  local own, consumer, fence, token = keys[1], args[1], args[2], args[5]
  local stale = check(own, args[3], fence, args[4])
  if stale then return stale end
  local parts, at = {}, 7
  while at <= #args do
    local place, last_table = args[at], at + 2 * tonumber(args[at + 1])
    stale = place ~= own and overtaken(place, consumer, fence)
    if stale then return stale end
    if is_late(place, consumer, fence, args[6]) then return {'late'} end
    for i = at + 2, last_table, 2 do
      local base = place .. ':' .. args[i] .. ':'
      if was_replaced(base) then return {'replaced'} end
      parts[#parts + 1] = {base = base, changes = args[i + 1], is_swept = i == at + 2}
    end
    at = last_table + 2
  end
  for _, part in ipairs(parts) do
    store(part.base, cmsgpack.unpack(part.changes), token)
    if part.is_swept then sweep(part.base, 4, token) end
  end
  if args[4] ~= '' then redis.call('HSET', own .. ':consumer', 'at', args[4]) end
  return {'ok'}
end)

`
