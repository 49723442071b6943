import { parseArgs } from 'node:util';
import { type Action, type Option, type Options, UsageError } from './command.ts';
import { didYouMean } from './suggestion.ts';

/** Options of every action. */
export const COMMON_OPTIONS = {
  json: { about: 'print one JSON document instead of text' },
  help: { about: 'explain the command' },
} as const satisfies Options;

export interface ParsedArguments {
  /** Print help instead of running. */
  help: boolean;
  values: Record<string, string | string[] | true>;
  arguments: (string | undefined)[];
}

/**
 * Parses the words after the action's name. With `--help` among them nothing else is checked.
 * @throws UsageError
 */
export function parseArguments(
  action: Action,
  { name, argv }: { name: string; argv: readonly string[] },
): ParsedArguments {
  const options: Options = { ...COMMON_OPTIONS, ...action.options };
  const { tokens, positionals } = parseArgs({
    args: [...argv],
    // The checks below have more helpful messages.
    strict: false,
    allowPositionals: true,
    tokens: true,
    options: {
      ...Object.fromEntries(
        Object.entries(options).map(
          ([key, option]) => [key, { type: isSwitch(option) ? 'boolean' : 'string' }] as const,
        ),
      ),
      help: { type: 'boolean', short: 'h' },
    },
  });
  const given = tokens.filter((token) => token.kind === 'option');
  if (given.some((token) => token.name === 'help')) return { help: true, values: {}, arguments: [] };
  const refuse = (problem: string) => new UsageError(`${problem} (tandem ${name} --help explains)`);
  const values: Record<string, string | string[] | true> = {};
  for (const { name: key, rawName, value, inlineValue } of given) {
    const option = Object.hasOwn(options, key) ? options[key] : undefined;
    if (option === undefined) {
      const known = Object.keys(options).map((each) => `--${each}`);
      throw refuse(`${rawName} is not an option of tandem ${name}${didYouMean(rawName, known)}`);
    }
    if (isSwitch(option)) {
      if (value !== undefined) throw refuse(`${rawName} takes no value`);
      values[key] = true;
      continue;
    }
    // The next option in place of a value: more likely the value was forgotten.
    if (value === undefined || (!inlineValue && /^-./.test(value))) {
      throw refuse(`${rawName} needs a value: ${rawName} ${option.value}, or ${rawName}=${option.value}`);
    }
    values[key] = option.multiple ? [...((values[key] as string[] | undefined) ?? []), value] : value;
  }
  const missing = action.parameters.slice(positionals.length).filter(({ optional }) => !optional);
  if (missing.length > 0) throw refuse(`${missing.map((each) => each.name).join(' and ')} missing`);
  const excess = positionals[action.parameters.length];
  if (excess !== undefined) throw refuse(`${JSON.stringify(excess)} is one argument too many`);
  return { help: false, values, arguments: action.parameters.map((_, at) => positionals[at]) };
}

function isSwitch(option: Option): boolean {
  return option.value === undefined;
}
