// Loaded before the service: its clock is ahead of the machine's by so many ms, or behind where they are negative.
const now = Date.now.bind(Date)
Date.now = () => now() + Number(process.env.CLOCK_AHEAD_MS)
