// Hands the client's own figures to longhaul-statusline and draws the line it answers; decides nothing. Without
// a program, with an odd answer or under a client that lacks these events the client's own line stays as it is.
// No turn waits for the program. The client lays type files beside a module under development: never ours.
import type { EngineInterface, Register } from 'claude-code'

type Event = 'start' | 'step' | 'measure' | 'stream'
type Answer = { session: string; text: string; place: unknown; fleet: unknown }

const PROGRAM_MS = 2000
const STAMP_EVERY_MS = 5000
const AFTER_COMPACTION_MS = [400, 2500]
const AFTER_TURN_MS = 1500
const FLEET_EVERY_MS = 5000
// Somebody took away the directory that this session was started with: the version beside it goes on. The client
// keeps it while a session uses it, and runs no hook without it (2.1.332).
const OTHER_VERSION =
  'for l in "${1%/longhaul/*}"/longhaul/*/hooks/launcher; do [ -r "$l" ] && exec sh "$l" longhaul-statusline; done'

let answer: Answer | undefined
let columns: number | undefined
let askedFor = ''
let stampedAt = 0
let running: Promise<void> | undefined
let waiting: Event | undefined
let fleet: string | undefined
let watching = false

/** One run at a time; whatever comes meanwhile becomes one more. A stamp is not worth another. */
function refresh($: EngineInterface, event: Event): Promise<void> {
  stampedAt = Date.now()
  if (running && event !== 'stream') waiting = event
  running ??= run($, event)
  return running
}

async function run($: EngineInterface, first: Event): Promise<void> {
  try {
    for (let event: Event | undefined = first; event; event = waiting) {
      waiting = undefined
      const said = await ask($, event).catch(() => undefined)
      if (event === 'stream') continue
      answer = said
      $.ui.invalidate('ui.render')
    }
  } finally {
    running = undefined
  }
}

async function ask($: EngineInterface, event: Event): Promise<Answer | undefined> {
  const session = await $.session.id()
  const known = await payload($, event, session)
  const nothingNew = known.longhaul.figures === null && (event === 'step' || event === 'measure')
  if (nothingNew || (await $.session.id()) !== session) return answer
  const how = { stdin: JSON.stringify(known), env: await environment($), timeoutMs: PROGRAM_MS }
  let ran = await $.process.run(['sh', `${$.plugin.root}/hooks/launcher`, 'longhaul-statusline'], how)
  if (ran.exitCode !== 0) ran = await $.process.run(['sh', '-c', OTHER_VERSION, 'sh', $.plugin.root], how)
  return ran.exitCode === 0 ? read(ran.stdout, session) : undefined
}

/** A status line payload as far as a mod knows it, and the figures that only a mod can read. */
async function payload($: EngineInterface, event: Event, session_id: string) {
  const usage = event === 'stream' ? undefined : await $.session.usage({ breakdown: 'summary' })
  const context = usage?.context
  const its = context?.breakdown
  const cwd = await $.session.cwd()
  return {
    session_id,
    transcript_path: await transcript($),
    cwd,
    workspace: { current_dir: cwd, project_dir: await $.session.root() },
    version: (await $.session.version()).version,
    model: { id: its?.model ?? (await $.session.model()), display_name: its?.modelLabel },
    longhaul: {
      v: 1,
      event,
      columns,
      figures: its
        ? {
            tokens: context?.tokens,
            output_tokens: its.apiUsage?.output_tokens,
            window: context?.window,
            autoCompactThreshold: its.autoCompactThreshold,
            isAutoCompactEnabled: its.isAutoCompactEnabled,
            rawMaxTokens: its.rawMaxTokens,
            autocompactSource: its.autocompactSource,
          }
        : null,
    },
  }
}

/** Absent in a session that keeps none, and under clients that do not tell. */
async function transcript($: EngineInterface): Promise<string | undefined> {
  try {
    return (await $.session.info()).transcriptPath || undefined
  } catch {
    return undefined
  }
}

/** What a command hook's environment says. It is refused where the plugin's data folder cannot be made. */
async function environment($: EngineInterface): Promise<Record<string, string>> {
  try {
    return await $.process.hookEnv()
  } catch {
    return { CLAUDE_PROJECT_DIR: await $.session.root() }
  }
}

function read(stdout: string, session: string): Answer | undefined {
  const { text, place, fleet } = JSON.parse(stdout)
  return typeof text === 'string' && text ? { session, text, place, fleet } : undefined
}

/** Another session may get stuck or ask something while this one rests: a file says when there is news. */
function watch($: EngineInterface): void {
  if (watching) return
  watching = true
  $.clock.every(FLEET_EVERY_MS, async () => {
    if (typeof answer?.fleet !== 'string') return
    const now = await $.fs.read(answer.fleet).catch(() => '')
    const news = fleet !== undefined && now !== fleet
    fleet = now
    if (news) void refresh($, 'start')
  })
}

/** The rows to draw where the person's own status line says `theirs`. */
function rows(theirs: string | null, { text, place }: Answer): string | null {
  if (place === 'off') return theirs
  return theirs === null || place === 'replace' ? text : `${theirs}\n${text}`
}

export const register: Register = on => {
  on('turn.step', async function* ($, e, next) {
    if (e.agentId !== undefined) return yield* next(e)
    const response = next(e)
    for await (const chunk of response) {
      if (Date.now() - stampedAt >= STAMP_EVERY_MS) void refresh($, 'stream')
      yield chunk
    }
    void refresh($, 'step')
    return response.result
  })
  // The turn's last rows reach the transcript a moment after its figures.
  on('session.measure', ($, e, next) => {
    void refresh($, 'measure')
    $.clock.after(AFTER_TURN_MS, () => refresh($, 'measure'))
    return next(e)
  })
  // A headless client is gone a moment after its last figures.
  on('session.end', async ($, e, next) => {
    await running
    return next(e)
  })
  // The figures of before stand for some milliseconds more, the transcript's new row is later still.
  on('session.compact', async ($, e, next) => {
    const result = await next(e)
    if (e.agentId === undefined && e.trigger !== 'precompute') {
      for (const ms of AFTER_COMPACTION_MS) $.clock.after(ms, () => refresh($, 'start'))
    }
    return result
  })
  // Another session on the same screen: /clear, /resume, /branch.
  on('classic.SessionStart', ($, e, next) => {
    if (e.source !== 'compact') void refresh($, 'start')
    return next(e)
  })
  on('classic.PostModelSwitch', ($, e, next) => {
    void refresh($, 'start')
    return next(e)
  })
  on('ui.render', { component: 'StatusLine' }, async ($, e, next) => {
    columns = e.props.columns
    watch($)
    const session = await $.session.id()
    if (askedFor !== `${session} ${columns}`) {
      askedFor = `${session} ${columns}`
      void refresh($, 'start')
    }
    if (answer?.session !== session) return next(e)
    return next({ ...e, props: { ...e.props, text: rows(e.props.text, answer) } })
  })
}
