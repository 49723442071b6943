import type { CommandHost } from './host.ts';
import type { Terminal } from './terminal.ts';

/**
 * A command. It has an action of its own (`tandem call AGENT CUSTOMER`), named actions (`tandem call list`), or both.
 */
export interface Command {
  action?: Action;
  actions?: Readonly<Record<string, Action>>;
  /** Shown by `--help` below the options. */
  notes?: string;
}

export interface Action {
  summary: string;
  parameters: readonly Parameter[];
  options: Options;
  run: (invocation: Invocation<Options>) => Promise<Outcome>;
}

/** A positional argument. Optional ones come last. */
export interface Parameter {
  /** In capitals, e.g. `AGENT`. */
  name: string;
  about: string;
  optional?: true;
}

export type Options = Readonly<Record<string, Option>>;

export interface Option {
  about: string;
  /** Placeholder of the value in the help, in capitals. Without one the option is a switch. */
  value?: string;
  /** May be repeated. */
  multiple?: true;
}

export interface Invocation<O extends Options> {
  values: ValuesOf<O>;
  /** In the order of the parameters; undefined for an omitted optional one. */
  arguments: readonly (string | undefined)[];
  terminal: Terminal;
  host: CommandHost;
}

export type ValuesOf<O extends Options> = { readonly [Name in keyof O]?: ValueOf<O[Name]> };
type ValueOf<O extends Option> = O extends { value: string }
  ? O extends { multiple: true }
    ? string[]
    : string
  : true;

/** Result of an action: `data` for `--json`, `text` for people. An action that streams its text omits it. */
export interface Outcome {
  data: unknown;
  text?: string;
  /** The action worked but the result is negative: exit code 1. */
  failure?: { code: string; message: string };
  /** Default: 0, or 1 with a failure. */
  exitCode?: number;
}

/** Types the options of `run`. */
export function defineAction<const O extends Options>(action: {
  summary: string;
  parameters?: readonly Parameter[];
  options?: O;
  run: (invocation: Invocation<O>) => Promise<Outcome>;
}): Action {
  const { parameters = [], options = {}, run } = action;
  return { summary: action.summary, parameters, options, run: run as Action['run'] };
}

/** A failure with a one-line message that says what to do. */
export class CommandError extends Error {
  override readonly name: string = 'CommandError';
  readonly code: string;
  readonly exitCode: number = 1;

  constructor(code: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** Error of a file that cannot be written, with the name that the user gave. */
export function notWritten(file: string, cause: unknown): CommandError {
  return new CommandError('NOT_WRITTEN', `${file} cannot be written: ${(cause as Error).message}`, { cause });
}

/** Invalid arguments: exit code 2. */
export class UsageError extends CommandError {
  override readonly name = 'UsageError';
  override readonly exitCode = 2;

  constructor(message: string) {
    super('USAGE', message);
  }
}
