import { COMMON_OPTIONS } from './arguments.ts';
import type { Action, Command, Option, Options } from './command.ts';
import { COMMANDS, type Registered } from './registry.ts';

/** `tandem --help` */
export function overallHelp(): string {
  return [
    'Usage: tandem COMMAND [ARGUMENTS] [--json] [--help]',
    '',
    ...columns(COMMANDS.map(({ name, summary }) => [name, summary])),
    '',
    'tandem help COMMAND   explains a command and its options',
    'tandem --version      prints the version',
    '',
    'call, transcribe, speak and trunks call the server at TANDEM_URL (default: PORT on this machine) with the API key',
    'in TANDEM_API_KEY. keys, wallet, prices, workspaces and doctor open the database and the data folder directly.',
    'Settings come from the environment and .env, as for the server; tandem serve --help lists them.',
    '',
    'Exit codes: 0 success, 1 failure, 2 invalid usage.',
    '',
  ].join('\n');
}

/** `tandem help COMMAND`: all its actions. */
export function commandHelp({ name, summary }: Registered, command: Command): string {
  const actions = Object.entries(command.actions ?? {}).map(([key, action]) => ({ path: `${name} ${key}`, action }));
  if (command.action !== undefined) actions.unshift({ path: name, action: command.action });
  return [
    `tandem ${name}: ${summary}`,
    '',
    ...actions.flatMap(({ path, action }) => [...describe(path, action), '']),
    ...describeOptions(COMMON_OPTIONS),
    ...(command.notes === undefined ? [] : ['', command.notes.trimEnd()]),
    '',
  ].join('\n');
}

/** `tandem help COMMAND ACTION` */
export function actionHelp(path: string, action: Action, notes?: string): string {
  return [
    ...describe(path, action),
    ...describeOptions(COMMON_OPTIONS),
    ...(notes === undefined ? [] : ['', notes.trimEnd()]),
    '',
  ].join('\n');
}

function describe(path: string, { summary, parameters, options }: Action): string[] {
  const typed = parameters.map(({ name, optional }) => (optional ? ` [${name}]` : ` ${name}`)).join('');
  const hasOptions = Object.keys(options).length > 0;
  return [
    `Usage: tandem ${path}${typed}${hasOptions ? ' [OPTIONS]' : ''}`,
    `  ${summary}`,
    ...columns(parameters.map(({ name, about }) => [name, about])),
    ...describeOptions(options),
  ];
}

function describeOptions(options: Options): string[] {
  return columns(Object.entries(options).map(([name, option]) => [typedAs(name, option), option.about]));
}

function typedAs(name: string, { value, multiple }: Option): string {
  return `--${name}${value === undefined ? '' : ` ${value}`}${multiple ? ' ...' : ''}`;
}

function columns(rows: readonly (readonly [string, string])[]): string[] {
  const width = Math.max(COLUMN_WIDTH, ...rows.map(([left]) => left.length + 2));
  return rows.map(([left, right]) => `  ${left.padEnd(width)}${right}`);
}

const COLUMN_WIDTH = 26;
