/** Raised with every change of the library: a server keeps one under this name beside those of other versions. */
export const LIBRARY = 'waymark3'

/**
 * What Redis does in one step, as a library of functions. Keys of one place share a hash tag, so each call works on one
 * node of a cluster. `P` is the name of a place, such as `wm:{o:<organization>}`; a table's keys in it are
 * `P:<generation>:` + `rows` (id to row), `terms` (id to its index terms, packed), `ids` (all ids), `x` (ids by the time
 * of their end), `i:<index>` (members: an encoded value, then the id). Loops are bounded by what the caller asks for.
 */
export const LIBRARY_CODE = `#!lua name=${LIBRARY}
local function now()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end

local function id_of(member)
  local tag = string.byte(member, 1)
  if tag == 2 then
    local _, last = string.find(member, '\\0\\0', 2, true)
    return string.sub(member, last + 1)
  end
  if tag == 1 then return string.sub(member, 10) end
  return string.sub(member, 2)
end

-- Terms are packed as a length in four bytes and so many bytes, each.
local function terms_in(packed)
  local terms, at = {}, 1
  while at <= #packed do
    local size = struct.unpack('>I4', packed, at)
    terms[#terms + 1] = string.sub(packed, at + 4, at + 3 + size)
    at = at + 4 + size
  end
  return terms
end

local function place_term(base, term, put)
  local cut = string.find(term, '\\0', 1, true)
  local key = base .. 'i:' .. string.sub(term, 1, cut - 1)
  if put then redis.call('ZADD', key, 0, string.sub(term, cut + 1))
  else redis.call('ZREM', key, string.sub(term, cut + 1)) end
end

local function delete_row(base, id)
  local terms = redis.call('HGET', base .. 'terms', id)
  if terms then
    for _, term in ipairs(terms_in(terms)) do place_term(base, term, false) end
    redis.call('HDEL', base .. 'terms', id)
  end
  redis.call('HDEL', base .. 'rows', id)
  redis.call('ZREM', base .. 'ids', id)
  redis.call('ZREM', base .. 'x', id)
end

local function put_row(base, id, ends, row, terms)
  local old = redis.call('HGET', base .. 'terms', id)
  if old ~= terms then
    local before = {}
    if old then for _, term in ipairs(terms_in(old)) do before[term] = true end end
    for _, term in ipairs(terms_in(terms)) do
      if before[term] then before[term] = nil else place_term(base, term, true) end
    end
    for term in pairs(before) do place_term(base, term, false) end
    redis.call('HSET', base .. 'terms', id, terms)
  end
  redis.call('HSET', base .. 'rows', id, row)
  redis.call('ZADD', base .. 'ids', 0, id)
  if ends == '0' then redis.call('ZREM', base .. 'x', id) else redis.call('ZADD', base .. 'x', ends, id) end
end

local function has_ended(base, id)
  local ends = redis.call('ZSCORE', base .. 'x', id)
  return ends and tonumber(ends) <= now()
end

local function sweep(base, most)
  local ended = redis.call('ZRANGE', base .. 'x', '-inf', now(), 'BYSCORE', 'LIMIT', 0, most)
  for _, id in ipairs(ended) do delete_row(base, id) end
  return #ended
end

-- KEYS P of the consumer, ARGV: from, fence, at ('' leaves the checkpoint). Answers nothing where it holds.
local function check(key, from, fence, at)
  local stored = redis.call('HMGET', key .. ':consumer', 'at', 'fence')
  local is = stored[1] or ''
  if (stored[2] or '0') ~= fence then return {'stale', is, stored[2] or '0'} end
  if is == from then return nil end
  if at ~= '' and is == at then return {'done'} end
  return {'stale', is, stored[2] or '0'}
end

local function is_busy(place, is_forced)
  if is_forced == '1' or redis.call('EXISTS', place .. ':busy') == 0 then return false end
  redis.call('SET', place .. ':waiting', '1', 'PX', 60)
  return true
end

redis.register_function('${LIBRARY}_check', function(keys, args)
  return check(keys[1], args[1], args[2], args[3]) or {'ok'}
end)

-- KEYS P, ARGV: consumer, fence, step (only first next last), is own place, from, at, then for each change
-- generation, id, ends, row ('' deletes), terms.
redis.register_function('${LIBRARY}_commit', function(keys, args)
  local place, consumer, fence, step = keys[1], args[1], args[2], args[3]
  if consumer ~= '' then
    if args[4] == '1' then
      local stale = check(place, args[5], fence, args[6])
      if stale then return stale end
    else
      local last = redis.call('HGET', place .. ':fences', consumer)
      if last and tonumber(last) > tonumber(fence) then return {'stale', '', last} end
      if last ~= fence then redis.call('HSET', place .. ':fences', consumer, fence) end
    end
  end
  -- Who was kept waiting by the last commit of several steps reads before the next one begins.
  if step == 'first' and redis.call('EXISTS', place .. ':waiting') == 1 then return {'wait'} end
  if step == 'first' or step == 'next' then redis.call('SET', place .. ':busy', '1', 'PX', 5000) end
  for i = 7, #args, 5 do
    local base = place .. ':' .. args[i] .. ':'
    if args[i + 3] == '' then delete_row(base, args[i + 1])
    else put_row(base, args[i + 1], args[i + 2], args[i + 3], args[i + 4]) end
  end
  if #args > 6 then sweep(place .. ':' .. args[7] .. ':', 4) end
  if step == 'last' then redis.call('DEL', place .. ':busy') end
  if #args > 6 then redis.call('INCR', place .. ':version') end
  if args[4] == '1' and args[6] ~= '' and (step == 'only' or step == 'last') then
    redis.call('HSET', place .. ':consumer', 'at', args[6])
  end
  return {'ok'}
end)

redis.register_function('${LIBRARY}_take', function(keys)
  local time = redis.call('TIME')
  local stored = redis.call('HMGET', keys[1] .. ':consumer', 'at', 'fence')
  local fence = math.max(tonumber(stored[2] or '0') + 1, tonumber(time[1]) * 1000000 + tonumber(time[2]))
  local text = string.format('%.0f', fence)
  redis.call('HSET', keys[1] .. ':consumer', 'fence', text)
  return {stored[1] or '', text}
end)

-- KEYS P, ARGV: generation, id, ends, row, terms. Answers the row that was there.
redis.register_function('${LIBRARY}_put_if_absent', function(keys, args)
  local base = keys[1] .. ':' .. args[1] .. ':'
  local there = redis.call('HGET', base .. 'rows', args[2])
  if there and not has_ended(base, args[2]) then return there end
  put_row(base, args[2], args[3], args[4], args[5])
  redis.call('INCR', keys[1] .. ':version')
  return false
end)

-- KEYS P, ARGV: generation, whether to look although a commit is under way, ids.
redis.register_function('${LIBRARY}_rows', function(keys, args)
  if is_busy(keys[1], args[2]) then return {'busy'} end
  local base = keys[1] .. ':' .. args[1] .. ':'
  local some = redis.call('EXISTS', base .. 'x') == 1
  local found = {'ok'}
  for i = 3, #args do
    local row = redis.call('HGET', base .. 'rows', args[i])
    if row and some and has_ended(base, args[i]) then row = false end
    found[#found + 1] = row
  end
  return found
end)

-- KEYS P, ARGV: generation, most to delete. Answers how many ended rows were deleted.
redis.register_function('${LIBRARY}_sweep', function(keys, args)
  return sweep(keys[1] .. ':' .. args[1] .. ':', args[2])
end)

-- KEYS P, ARGV: generation, then for each: index ('' for all ids), from, to. Answers how many entries each has.
redis.register_function('${LIBRARY}_count', function(keys, args)
  local base = keys[1] .. ':' .. args[1] .. ':'
  local counts = {}
  for i = 2, #args, 3 do
    local key = args[i] == '' and base .. 'ids' or base .. 'i:' .. args[i]
    counts[#counts + 1] = redis.call('ZLEXCOUNT', key, args[i + 1], args[i + 2])
  end
  return counts
end)

-- KEYS P, ARGV: generation, force, index, from, to, is descending, most entries to look at, most rows, whether rows are
-- wanted, then for each check: index, number of values, values (encoded).
-- Answers: status, is at the end, last entry, ids, rows, number of commits of the place.
redis.register_function('${LIBRARY}_walk', function(keys, args)
  if is_busy(keys[1], args[2]) then return {'busy'} end
  local base = keys[1] .. ':' .. args[1] .. ':'
  if redis.call('ZCOUNT', base .. 'x', '-inf', now()) > 0 then return {'ended'} end
  local by_id = args[3] == ''
  local key = by_id and base .. 'ids' or base .. 'i:' .. args[3]
  local low, high, down = args[4], args[5], args[6] == '1'
  local budget, want = tonumber(args[7]), tonumber(args[8])
  local checks, at = {}, 10
  while at <= #args do
    local values = {}
    for i = 1, tonumber(args[at + 1]) do values[i] = args[at + 1 + i] end
    checks[#checks + 1] = {key = base .. 'i:' .. args[at], values = values}
    at = at + 2 + #values
  end
  local ids, seen, last, finished = {}, 0, '', false
  while seen < budget and #ids < want and not finished do
    local size = math.min(budget - seen, 256)
    local page
    if down then page = redis.call('ZRANGE', key, high, low, 'BYLEX', 'REV', 'LIMIT', 0, size)
    else page = redis.call('ZRANGE', key, low, high, 'BYLEX', 'LIMIT', 0, size) end
    for _, member in ipairs(page) do
      seen = seen + 1
      last = member
      local id = by_id and member or id_of(member)
      local passes = true
      for _, one in ipairs(checks) do
        local is_in = false
        for _, value in ipairs(one.values) do
          if redis.call('ZSCORE', one.key, value .. id) then is_in = true break end
        end
        if not is_in then passes = false break end
      end
      if passes then
        ids[#ids + 1] = id
        if #ids == want then break end
      end
    end
    if #page < size and #ids < want then finished = true end
    if last ~= '' then if down then high = '(' .. last else low = '(' .. last end end
  end
  local rows = {}
  if args[9] == '1' then
    for i, id in ipairs(ids) do rows[i] = redis.call('HGET', base .. 'rows', id) or '' end
  end
  return {'ok', finished and 1 or 0, last, ids, rows, redis.call('GET', keys[1] .. ':version') or '0'}
end)

-- KEYS counter, ARGV: window in ms. Answers the count and when it ends.
redis.register_function('${LIBRARY}_increment', function(keys, args)
  local count = redis.call('INCR', keys[1])
  if count == 1 then redis.call('PEXPIRE', keys[1], args[1]) end
  return {count, string.format('%.0f', redis.call('PEXPIRETIME', keys[1]))}
end)

-- KEYS registry, ARGV: table, version, generation to use where the table is new, where its rows live, whether one
-- projection builds them. Answers the generation in force, the one that it replaces, and whether its rows wait to be built.
redis.register_function('${LIBRARY}_declare', function(keys, args)
  local stored = redis.call('HGET', keys[1], args[1])
  local record = stored and cjson.decode(stored) or nil
  local is_known = record and record.version == tonumber(args[2])
  local declared = {version = tonumber(args[2]), lives = args[4], projected = args[5] == '1'}
  if is_known then
    declared.generation = record.generation
    declared.lost = record.lost
  else
    declared.generation = args[3]
    declared.lost = declared.projected
  end
  redis.call('HSET', keys[1], args[1], cjson.encode(declared))
  return {declared.generation, not is_known and record and record.generation or '', declared.lost and '1' or '0'}
end)

-- KEYS registry, ARGV: epoch that is to be there, epoch that follows it. Answers the epoch in force, and where it is ours
-- the generations that end. Rows that live by themselves come from no log: those that are left stay.
redis.register_function('${LIBRARY}_begin', function(keys, args)
  local there = redis.call('HGET', keys[1], '#epoch') or ''
  if there ~= args[1] then return {there} end
  local flat, ended = redis.call('HGETALL', keys[1]), {args[2]}
  for i = 1, #flat, 2 do
    if flat[i] ~= '#epoch' then
      local record = cjson.decode(flat[i + 1])
      if record.lives ~= 'row' then
        ended[#ended + 1] = record.generation
        record.generation = args[2] .. string.format('%04x', i)
        record.lost = record.projected
        redis.call('HSET', keys[1], flat[i], cjson.encode(record))
      end
    end
  end
  redis.call('HSET', keys[1], '#epoch', args[2])
  return ended
end)

-- KEYS registry, ARGV: epoch, tables. Puts what is under <table>@next in the place of <table>.
redis.register_function('${LIBRARY}_promote', function(keys, args)
  if redis.call('HGET', keys[1], '#epoch') ~= args[1] then return redis.error_reply('LOST what was built') end
  for i = 2, #args do
    local next_name = args[i] .. '@next'
    local built = redis.call('HGET', keys[1], next_name)
    if built then
      local live, record = redis.call('HGET', keys[1], args[i]), cjson.decode(built)
      record.projected = live and cjson.decode(live).projected or false
      redis.call('HSET', keys[1], args[i], cjson.encode(record))
      redis.call('HDEL', keys[1], next_name)
    end
  end
  return redis.status_reply('OK')
end)
`
