/** Steps of the registry of tables that Redis runs atomically, as part of the library of that name. */
export const registryFunctions = (library: string): string => `
-- KEYS registry, ARGV: table, version, generation to use where the table is new, where its rows live, whether one
-- projection builds them, its indexes (a line each). Answers the generation in force, the one that it replaces, whether its
-- rows wait to be built, and the indexes of what it replaces.
redis.register_function('${library}_declare', function(keys, args)
  local stored = redis.call('HGET', keys[1], args[1])
  local record = stored and cjson.decode(stored) or nil
  local is_known = record and record.version == tonumber(args[2])
  local declared = {version = tonumber(args[2]), lives = args[4], projected = args[5] == '1', indexes = args[6]}
  if is_known then
    declared.generation = record.generation
    declared.lost = record.lost
  else
    declared.generation = args[3]
    declared.lost = declared.projected
  end
  redis.call('HSET', keys[1], args[1], cjson.encode(declared))
  local replaced = not is_known and record or {generation = ''}
  return {declared.generation, replaced.generation, declared.lost and '1' or '0', replaced.indexes or ''}
end)

-- KEYS registry, ARGV: epoch that is to be there, epoch that follows it. Answers the epoch in force, and where it is ours
-- the generations that end. Rows that live by themselves come from no log: those that are left stay.
redis.register_function('${library}_begin', function(keys, args)
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
redis.register_function('${library}_promote', function(keys, args)
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
