import { ENDED } from './places.ts'

/** Rows reported for the last changes of a table and place: if there are more, or more bytes, they are read again. */
const TOLD_ROWS_MAX = 16
const TOLD_BYTES_MAX = 8_192
const TOLD_CHANGES = 64
/** Life of these reports where nothing more is written. */
const TOLD_MS = 10_000
/** Time for which the writer of a row is known: longer than a put and the wait for its replica take. */
const PUT_KNOWN_MS = 20_000

/** Functions that store rows with their index terms, as part of the library. */
export const STORE_FUNCTIONS = `-- A command on a key with a list of arguments: as many at once as the stack takes.
local function call_with(command, key, list)
  for from = 1, #list, 1000 do redis.call(command, key, unpack(list, from, math.min(#list, from + 999))) end
end

local function values_of(key, fields)
  local values = {}
  for from = 1, #fields, 200 do
    local part = redis.call('HMGET', key, unpack(fields, from, math.min(#fields, from + 199)))
    for i = 1, #part do values[#values + 1] = part[i] end
  end
  return values
end

-- Terms are packed as a length in four bytes and so many bytes, each.
local function set_of(packed)
  local set, at = {}, 1
  while at <= #packed do
    local stop = at + 3 + struct.unpack('>I4', packed, at)
    set[string.sub(packed, at + 4, stop)] = true
    at = stop + 1
  end
  return set
end

-- Adds the members that terms stand for to the list of their index, each behind a score where one is given; none of \`but\`.
local function collect(lists, packed, score, but)
  local at, size = 1, #packed
  while at <= size do
    local stop = at + 3 + struct.unpack('>I4', packed, at)
    if not (but and but[string.sub(packed, at + 4, stop)]) then
      local cut = string.find(packed, '\\0', at + 4, true)
      local index = string.sub(packed, at + 4, cut - 1)
      local list = lists[index]
      if not list then list = {}; lists[index] = list end
      if score then list[#list + 1] = score end
      list[#list + 1] = string.sub(packed, cut + 1, stop)
    end
    at = stop + 1
  end
end

local function last_change(base)
  return redis.call('HGET', base .. 'c', 'rows') or ''
end

-- Whether other rows were put in the place of the table's: what is stored now nobody would read.
local function was_replaced(base)
  return last_change(base) == '${ENDED}'
end

-- Keeps for a while what a change did, so that others can tell what it does not concern: its token, then for each row id,
-- terms before, terms now, each behind its length; '=' before where terms are the same, '-' where there is no row, which is
-- more than no terms. First stands a change of which only the token is known.
local function tell(base, token, told)
  local list, packed = base .. 'l', told and table.concat(told)
  if not packed or #packed > ${TOLD_BYTES_MAX} then
    redis.call('DEL', list)
    return
  end
  -- A process of another version may have changed rows and told nothing of it: then all before is forgotten.
  local last = last_change(base)
  if redis.call('LRANGE', list, -2, -2)[1] ~= last then
    redis.call('DEL', list)
    redis.call('RPUSH', list, last, '')
  end
  redis.call('RPUSH', list, token, packed)
  redis.call('LTRIM', list, -2 * ${TOLD_CHANGES}, -1)
  redis.call('PEXPIRE', list, ${TOLD_MS})
end

-- Stores and deletes rows of one table, each named once: id, ends, row ('' deletes), terms, each. An index is called once for
-- all of them, with what changes. The token, which no other change anywhere has, is noted for all that this one touches:
-- rows, ids, each index.
local function store(base, changes, token)
  if #changes == 0 then return end
  local ids = {}
  for at = 1, #changes, 4 do ids[#ids + 1] = changes[at] end
  local stored = values_of(base .. 'terms', ids)
  local put, cut, rows, terms, new, gone, ending, endless = {}, {}, {}, {}, {}, {}, {}, {}
  local touched = {'rows', token}
  local told = #ids <= ${TOLD_ROWS_MAX} and {} or nil
  local function note(id, before, now)
    if told then told[#told + 1] = struct.pack('>I4', #id) .. id .. struct.pack('>I4', #before) .. before .. struct.pack('>I4', #now) .. now end
  end
  for no, id in ipairs(ids) do
    local ends, row, wanted, old = changes[no * 4 - 2], changes[no * 4 - 1], changes[no * 4], stored[no]
    if row == '' then
      if old then
        collect(cut, old)
        touched[3], touched[4] = 'ids', token
        note(id, old, '-')
      end
      gone[#gone + 1] = id
      endless[#endless + 1] = id
    else
      if old ~= wanted then
        if old then
          collect(put, wanted, '0', set_of(old))
          collect(cut, old, nil, set_of(wanted))
        else
          collect(put, wanted, '0')
          new[#new + 1] = '0'
          new[#new + 1] = id
          touched[3], touched[4] = 'ids', token
        end
        terms[#terms + 1] = id
        terms[#terms + 1] = wanted
        note(id, old or '-', wanted)
      else note(id, '=', '')
      end
      rows[#rows + 1] = id
      rows[#rows + 1] = row
      if ends == '0' then endless[#endless + 1] = id
      else
        ending[#ending + 1] = ends
        ending[#ending + 1] = id
      end
    end
  end
  local function touch(index)
    touched[#touched + 1] = index
    touched[#touched + 1] = token
  end
  for index in pairs(put) do touch(index) end
  for index in pairs(cut) do touch(index) end
  tell(base, token, told)
  call_with('HSET', base .. 'c', touched)
  for index, members in pairs(put) do call_with('ZADD', base .. 'i:' .. index, members) end
  for index, members in pairs(cut) do call_with('ZREM', base .. 'i:' .. index, members) end
  call_with('HSET', base .. 'terms', terms)
  call_with('HSET', base .. 'rows', rows)
  call_with('ZADD', base .. 'ids', new)
  call_with('HDEL', base .. 'terms', gone)
  call_with('HDEL', base .. 'rows', gone)
  call_with('ZREM', base .. 'ids', gone)
  if #endless > 0 and redis.call('EXISTS', base .. 'x') == 1 then call_with('ZREM', base .. 'x', endless) end
  call_with('ZADD', base .. 'x', ending)
end

-- Which change touched what last: names and tokens, a line each; empty where none has.
local function changes_of(base)
  return table.concat(redis.call('HGETALL', base .. 'c'), '\\n')
end
`

/** Steps on rows that live by themselves that Redis runs atomically, as part of the library of that name. */
export const singleRowFunctions = (library: string): string => `
-- KEYS row, and who put it; ARGV: token of the put, row, its end ('' for none). Answers the row that was there. A put that is
-- made again, as it may have been lost, finds its own token and changes nothing.
redis.register_function('${library}_put_single', function(keys, args)
  local key, by = keys[1], keys[1] .. ':by'
  if redis.call('GET', by) == args[1] then return false end
  local there = redis.call('GET', key)
  if there then return there end
  if args[3] == '' then redis.call('SET', key, args[2]) else redis.call('SET', key, args[2], 'PXAT', args[3]) end
  redis.call('SET', by, args[1], 'PX', ${PUT_KNOWN_MS})
  return false
end)

-- KEYS and ARGV as above. Deletes the row where it is still the one that this put stored.
register_read('${library}_take_back', function(keys, args)
  local key = keys[1]
  if redis.call('GET', key .. ':by') ~= args[1] or redis.call('GET', key) ~= args[2] then return 0 end
  return redis.call('DEL', key)
end)
`
