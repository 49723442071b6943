import { ConfigError } from '../../config.ts';
import { TandemError } from '../../machines/errors.ts';
import { TANDEM_VERSION } from '../../runtime/version.ts';
import { parseArguments } from './arguments.ts';
import {
  type Action,
  type Command,
  CommandError,
  type Invocation,
  type Options,
  type Outcome,
  UsageError,
} from './command.ts';
import { actionHelp, commandHelp, overallHelp } from './help.ts';
import type { CommandHost } from './host.ts';
import { COMMANDS, type Registered } from './registry.ts';
import { didYouMean } from './suggestion.ts';
import { openTerminal } from './terminal.ts';

/**
 * Runs one command line and returns its exit code: 0 done, 1 failed, 2 invalid. Text goes to standard output, errors as
 * one line to standard error; with `--json` exactly one document goes to standard output, errors included. Closes all
 * that it opens, except the streams of the host.
 */
export async function runCommandLine(typed: readonly string[], host: CommandHost): Promise<number> {
  const terminal = openTerminal(host, { json: wantsJson(typed) });
  // Waits, because a pipe accepts a long text in pieces and exiting earlier would cut it.
  const writeOut = (text: string) => new Promise<void>((resolve) => host.stdout.write(text, () => resolve()));
  const writeDocument = async (document: object) => {
    if (terminal.json && !terminal.hasPublished) await writeOut(`${JSON.stringify(document, null, 2)}\n`);
  };
  try {
    const outcome = await dispatch(typed, { host, terminal });
    await writeDocument(documentOf(outcome));
    if (outcome.text !== undefined && !terminal.json) await writeOut(`${outcome.text.trimEnd()}\n`);
    if (outcome.failure !== undefined) terminal.report(outcome.failure.message);
    return outcome.exitCode ?? (outcome.failure === undefined ? 0 : 1);
  } catch (error) {
    const { code, message, exitCode } = describeFailure(error);
    terminal.report(message);
    await writeDocument({ success: false, code, message });
    return exitCode;
  }
}

async function dispatch(
  typed: readonly string[],
  surroundings: Pick<Invocation<Options>, 'host' | 'terminal'>,
): Promise<Outcome> {
  // Allows `tandem --json keys list`; the terminal already knows the option.
  const [first, ...rest] = typed[0] === '--json' ? typed.slice(1) : typed;
  if (first === undefined || first === '--help' || first === '-h') return helpOutcome(overallHelp());
  if (first === '--version' || first === '-V') return version();
  if (first === 'help') return await help(rest.filter((word) => !word.startsWith('-')));
  const registered = find(first);
  const command = await registered.load();
  const { path, action, argv } = choose(registered, { command, argv: rest });
  if (action === null) return helpOutcome(commandHelp(registered, command));
  const parsed = parseArguments(action, { name: path, argv });
  if (parsed.help) {
    const isWhole = path === registered.name;
    return helpOutcome(isWhole ? commandHelp(registered, command) : actionHelp(path, action, command.notes));
  }
  return await action.run({
    values: parsed.values as never,
    arguments: parsed.arguments,
    ...surroundings,
  });
}

/** Selects the named action, else the command's own; null if the command has none and only its help applies. */
function choose(
  { name }: Registered,
  { command, argv }: { command: Command; argv: readonly string[] },
): { path: string; action: Action | null; argv: readonly string[] } {
  const { action, actions = {} } = command;
  const [first, ...rest] = argv;
  if (first !== undefined && Object.hasOwn(actions, first)) {
    return { path: `${name} ${first}`, action: actions[first]!, argv: rest };
  }
  if (action !== undefined) return { path: name, action, argv };
  if (argv.includes('--help') || argv.includes('-h')) return { path: name, action: null, argv };
  const names = Object.keys(actions);
  if (first === undefined || first.startsWith('-')) {
    throw new UsageError(`tandem ${name} is followed by one of ${names.join(', ')} (tandem ${name} --help explains)`);
  }
  const meant = didYouMean(first, names);
  throw new UsageError(`tandem ${name} has no ${JSON.stringify(first)}${meant || ':'} It has ${names.join(', ')}.`);
}

function find(name: string): Registered {
  const registered = COMMANDS.find((command) => command.name === name);
  if (registered !== undefined) return registered;
  const names = COMMANDS.map((command) => command.name);
  throw new UsageError(
    `there is no command ${JSON.stringify(name)}${didYouMean(name, names) || ':'} The commands are ${names.join(', ')}.`,
  );
}

async function help([name, actionName]: readonly string[]): Promise<Outcome> {
  if (name === undefined) return helpOutcome(overallHelp());
  const registered = find(name);
  const command = await registered.load();
  if (actionName === undefined) return helpOutcome(commandHelp(registered, command));
  const { path, action } = choose(registered, { command, argv: [actionName] });
  return helpOutcome(action === null ? commandHelp(registered, command) : actionHelp(path, action, command.notes));
}

function helpOutcome(text: string): Outcome {
  return { data: { help: text }, text };
}

function version(): Outcome {
  return { data: { version: TANDEM_VERSION }, text: TANDEM_VERSION };
}

function documentOf({ data, failure }: Outcome): object {
  return failure === undefined ? { success: true, data } : { success: false, ...failure, data };
}

/** Words after `--` are not options. */
function wantsJson(typed: readonly string[]): boolean {
  const end = typed.indexOf('--');
  return (end === -1 ? typed : typed.slice(0, end)).includes('--json');
}

function describeFailure(error: unknown): { code: string; message: string; exitCode: number } {
  if (error instanceof CommandError)
    return { code: error.code, message: oneLine(error.message), exitCode: error.exitCode };
  if (error instanceof ConfigError)
    return { code: 'INVALID_CONFIGURATION', message: oneLine(error.message), exitCode: 1 };
  if (error instanceof TandemError) return { code: error.code, message: oneLine(error.message), exitCode: 1 };
  // Any other error is a defect and shows its stack.
  const message = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return { code: 'INTERNAL', message, exitCode: 1 };
}

function oneLine(text: string): string {
  return text.replace(/\s*\n\s*/g, ' ');
}
