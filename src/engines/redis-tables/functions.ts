import { commitFunctions } from './commit-functions.ts'
import { registryFunctions } from './registry-functions.ts'
import { singleRowFunctions, STORE_FUNCTIONS } from './store-functions.ts'

/** Raised with every change of the library: a server keeps one under this name beside those of other versions. */
export const LIBRARY = 'waymark13'

/**
 * Steps that Redis runs atomically, as a library of functions. Keys of one place share a hash tag, so each call works
 * on one node of a cluster. `P` is the name of a place, such as `wm:{o:<organization>}`; a table's keys in it are
 * `P:<generation>:` + `rows` (id to row), `terms` (id to its index terms, packed), `ids` (all ids), `x` (ids by the
 * time of their end), `c` (the last change of everything), `l` (the effects of the last changes, for a while),
 * `i:<index>` (members: an encoded value, then the id). Loops are bounded by the caller's arguments.
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

${STORE_FUNCTIONS}
local function has_ended(base, id)
  local ends = redis.call('ZSCORE', base .. 'x', id)
  return ends and tonumber(ends) <= now()
end

local function some_have_ended(base)
  return redis.call('ZCOUNT', base .. 'x', '-inf', now()) > 0
end

local function sweep(base, most, token)
  local ended = redis.call('ZRANGE', base .. 'x', '-inf', now(), 'BYSCORE', 'LIMIT', 0, most)
  local changes = {}
  for i, id in ipairs(ended) do changes[i * 4 - 3], changes[i * 4 - 2], changes[i * 4 - 1], changes[i * 4] = id, '0', '', '' end
  store(base, changes, token)
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

-- How it is asked: '0', again ('2', after it was busy), or whatever is under way ('1').
local function is_busy(place, how)
  if how == '1' then return false end
  if redis.call('EXISTS', place .. ':busy') == 0 then
    -- Others who wait ask within this time.
    if how == '2' then redis.call('PEXPIRE', place .. ':waiting', 6, 'LT') end
    return false
  end
  redis.call('SET', place .. ':waiting', '1', 'PX', 60)
  return true
end

-- What reads, or deletes alone: it is served also where the memory is full.
local function register_read(name, callback)
  redis.register_function{function_name = name, callback = callback, flags = {'allow-oom'}}
end

-- Refused by a server that takes no writes, whatever the reason.
redis.register_function('${LIBRARY}_takes_writes', function() return 1 end)

redis.register_function('${LIBRARY}_check', function(keys, args)
  return check(keys[1], args[1], args[2], args[3]) or {'ok'}
end)

${commitFunctions(LIBRARY)}redis.register_function('${LIBRARY}_take', function(keys)
  local time = redis.call('TIME')
  local stored = redis.call('HMGET', keys[1] .. ':consumer', 'at', 'fence')
  local fence = math.max(tonumber(stored[2] or '0') + 1, tonumber(time[1]) * 1000000 + tonumber(time[2]))
  local text = string.format('%.0f', fence)
  redis.call('HSET', keys[1] .. ':consumer', 'fence', text)
  return {stored[1] or '', text}
end)

-- KEYS P, ARGV: generation, token, id, ends, row, terms. Answers the row that was there.
redis.register_function('${LIBRARY}_put_if_absent', function(keys, args)
  local base = keys[1] .. ':' .. args[1] .. ':'
  if was_replaced(base) then return redis.error_reply('LOST the table to another one') end
  local there = redis.call('HGET', base .. 'rows', args[3])
  if there and not has_ended(base, args[3]) then return there end
  store(base, {args[3], args[4], args[5], args[6]}, args[2])
  return false
end)

-- The rows whose ids the arguments name from the third on.
local function rows_of(base, args)
  local some = redis.call('EXISTS', base .. 'x') == 1
  local found = redis.call('HMGET', base .. 'rows', unpack(args, 3))
  if some then
    for i = 1, #found do if found[i] and has_ended(base, args[i + 2]) then found[i] = false end end
  end
  return found
end

-- KEYS P, ARGV: generation, whether to look although a commit is under way, ids. Answers status, rows, last change.
register_read('${LIBRARY}_rows', function(keys, args)
  if is_busy(keys[1], args[2]) then return {'busy'} end
  local base = keys[1] .. ':' .. args[1] .. ':'
  return {'ok', rows_of(base, args), last_change(base)}
end)

-- KEYS P, ARGV: generation, token. Answers which change touched what last, and where it is still known how many there were
-- since that token, each one's token and what it did. Nothing while rows wait to be swept, as what is remembered may have them.
register_read('${LIBRARY}_changes', function(keys, args)
  local base, since = keys[1] .. ':' .. args[1] .. ':', args[2]
  if some_have_ended(base) then return {''} end
  local changes = changes_of(base)
  if last_change(base) == since then return {changes, {}} end
  -- An empty text is not only the token before the first change, but also what is known of one that is not told.
  if since == '' then return {changes} end
  local at = redis.call('LPOS', base .. 'l', since, 'RANK', -1)
  if not at then return {changes} end
  return {changes, redis.call('LRANGE', base .. 'l', at + 2, -1)}
end)

-- KEYS P, ARGV: as of rows. Answers status, rows, and which change touched what last.
register_read('${LIBRARY}_page', function(keys, args)
  if is_busy(keys[1], args[2]) then return {'busy'} end
  local base = keys[1] .. ':' .. args[1] .. ':'
  return {'ok', rows_of(base, args), changes_of(base)}
end)

-- KEYS P, ARGV: generation, most to delete, token. Answers how many ended rows were deleted.
register_read('${LIBRARY}_sweep', function(keys, args)
  return sweep(keys[1] .. ':' .. args[1] .. ':', args[2], args[3])
end)

local function read_checks(base, args, at)
  local checks = {}
  while at <= #args do
    local check = {key = base .. 'i:' .. args[at], values = {}}
    for i = 1, tonumber(args[at + 1]) do check.values[i] = args[at + 1 + i] end
    checks[#checks + 1] = check
    at = at + 2 + #check.values
  end
  return checks
end

-- Those of the ids, in their order, that each check has under one of its values; and which entries they were.
local function passing(checks, ids)
  local left = {}
  for i = 1, #ids do left[i] = i end
  for _, check in ipairs(checks) do
    local found, waiting = {}, left
    for _, value in ipairs(check.values) do
      if #waiting == 0 then break end
      local members, absent = {}, {}
      for i, place in ipairs(waiting) do members[i] = value .. ids[place] end
      local scores = redis.call('ZMSCORE', check.key, unpack(members))
      for i, place in ipairs(waiting) do
        if scores[i] then found[place] = true else absent[#absent + 1] = place end
      end
      waiting = absent
    end
    local passed = {}
    for _, place in ipairs(left) do if found[place] then passed[#passed + 1] = place end end
    left = passed
  end
  return left
end

-- The entry that each of these rows has in an index of order; empty for none. A term begins behind its length and ends with
-- the row's id: what only looks like the index's name, in a value, does not.
local function entries_of(base, ids, index)
  local entries, name = values_of(base .. 'terms', ids), index .. '\\0'
  for i, id in ipairs(ids) do
    local packed, entry, at = entries[i] or '', '', nil
    repeat
      at = string.find(packed, name, at and at + 1 or 5, true)
      if at then
        local stop = at - 1 + struct.unpack('>I4', packed, at - 4)
        if stop <= #packed and string.sub(packed, stop - #id + 1, stop) == id then entry, at = string.sub(packed, at + #name, stop), nil end
      end
    until not at
    entries[i] = entry
  end
  return entries
end

-- How many entries of a table each stretch has: index ('' for all ids), from, to, each.
local function count_entries(base, args, at, stretches)
  local counts = {}
  for i = at, at + stretches * 3 - 1, 3 do
    local key = args[i] == '' and base .. 'ids' or base .. 'i:' .. args[i]
    counts[#counts + 1] = redis.call('ZLEXCOUNT', key, args[i + 1], args[i + 2])
  end
  return counts
end

-- KEYS P, ARGV: generation, force, number of stretches to count, is descending, most entries to look at, most rows that
-- pass, what is wanted of them (count, ids, rows, or by the name of an index of order their entries there), number of
-- stretches, then for each to count, and for each: index ('' for all ids), from, to, then for each check: index, number of
-- values, values (encoded). Goes through the stretches one after the other.
-- Answers: status, last change, stretches that it came to the end of, last entry of the one it stands in, how many passed,
-- ids as one MessagePack array, rows or entries, counts, and, where some were to count, which change touched what last.
register_read('${LIBRARY}_walk', function(keys, args)
  if is_busy(keys[1], args[2]) then return {'busy'} end
  local base = keys[1] .. ':' .. args[1] .. ':'
  if some_have_ended(base) then return {'ended'} end
  local counted, down, budget, want = tonumber(args[3]), args[4] == '1', tonumber(args[5]), tonumber(args[6])
  local wanted, stretches = args[7], tonumber(args[8])
  local first = 9 + counted * 3
  local counts = count_entries(base, args, 9, counted)
  local checks = read_checks(base, args, first + stretches * 3)
  local ids, count, done, last = {}, 0, 0, ''
  while done < stretches and budget > 0 and count < want do
    local at = first + done * 3
    local by_id = args[at] == ''
    local key = by_id and base .. 'ids' or base .. 'i:' .. args[at]
    local low, high = args[at + 1], args[at + 2]
    if last ~= '' then if down then high = '(' .. last else low = '(' .. last end end
    local size = math.min(budget, 128)
    if #checks == 0 then size = math.min(size, want - count) end
    local page
    if down then page = redis.call('ZRANGE', key, high, low, 'BYLEX', 'REV', 'LIMIT', 0, size)
    else page = redis.call('ZRANGE', key, low, high, 'BYLEX', 'LIMIT', 0, size) end
    budget = budget - math.max(1, #page)
    local of_page = page
    if not by_id then
      of_page = {}
      for i, member in ipairs(page) do of_page[i] = id_of(member) end
    end
    local left = passing(checks, of_page)
    local take = math.min(#left, want - count)
    if wanted ~= 'count' then for i = 1, take do ids[#ids + 1] = of_page[left[i]] end end
    count = count + take
    -- Where more pass than are wanted it stands behind the last one that it took.
    if take < #left or (take > 0 and count == want) then last = page[left[take]]
    elseif #page < size then done, last = done + 1, ''
    else last = page[#page] end
  end
  local rows = {}
  if wanted == 'rows' then rows = values_of(base .. 'rows', ids)
  elseif wanted ~= 'ids' and wanted ~= 'count' then rows = entries_of(base, ids, wanted) end
  for i = 1, #rows do rows[i] = rows[i] or '' end
  local changes = counted > 0 and changes_of(base) or ''
  return {'ok', last_change(base), done, last, count, cmsgpack.pack(ids), rows, counts, changes}
end)

-- KEYS counter, ARGV: window in ms. Answers the count and when it ends.
redis.register_function('${LIBRARY}_increment', function(keys, args)
  local count = redis.call('INCR', keys[1])
  if count == 1 then redis.call('PEXPIRE', keys[1], args[1]) end
  return {count, string.format('%.0f', redis.call('PEXPIRETIME', keys[1]))}
end)
${singleRowFunctions(LIBRARY)}${registryFunctions(LIBRARY)}`
