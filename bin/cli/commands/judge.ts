import { readFile } from 'node:fs/promises';
import { isObject } from '../../../runtime/is-object.ts';
import { API_OPTIONS, openApi } from '../api-access.ts';
import type { Api } from '../api-client.ts';
import { type Command, CommandError, defineAction, UsageError } from '../command.ts';
import { type CommandHost, pathIn } from '../host.ts';
import { numberOf } from '../option-values.ts';
import { readInput } from '../standard-input.ts';
import { didYouMean } from '../suggestion.ts';
import { oneLine, table } from '../terminal.ts';

const rubrics = defineAction({
  summary: 'List rubrics: your own and shared ones.',
  options: { mine: { about: 'only your own' }, ...API_OPTIONS },
  async run({ host, values }) {
    const all = await listRubrics(openApi(host, values), { onlyMine: values.mine });
    const rows = all.map(({ id, name, question_count, shared, is_mine }) => {
      return [id, oneLine(name), question_count, shared ? 'shared' : 'private', is_mine ? 'you' : 'another'];
    });
    const headings = ['ID', 'NAME', 'QUESTIONS', 'SEEN BY', 'MADE BY'];
    return { data: { rubrics: all }, text: table(headings, rows, 'There is none yet: tandem judge add makes one.') };
  },
});

const add = defineAction({
  summary: 'Create a rubric from questions and their possible answers.',
  parameters: [
    { name: 'NAME', about: 'unique in the workspace' },
    { name: 'FILE', about: 'JSON with the questions by key; tandem judge --help shows one' },
  ],
  options: {
    description: { value: 'TEXT', about: 'description of the rubric' },
    model: { value: 'MODEL', about: 'model id or alias (default: the default judge model)' },
    shared: { about: 'let the whole workspace use it' },
    ...API_OPTIONS,
  },
  async run({ host, values, arguments: [name = '', file = ''] }) {
    const { description, model, shared } = values;
    const questions = await questionsIn(file, host);
    const rubric = await openApi(host, values).post<Rubric>('/judge/rubrics', {
      name,
      description,
      model,
      shared,
      questions,
    });
    return { data: rubric, text: `Rubric ${rubric.id} has ${rubric.question_count} questions.` };
  },
});

const evaluate = defineAction({
  summary: 'Judge a text or a call by a rubric. Billed per token.',
  parameters: [
    { name: 'RUBRIC', about: 'its name or id, or a .json file with questions' },
    { name: 'TEXT', about: 'text to judge; - reads standard input', optional: true },
  ],
  options: {
    call: { value: 'CALL', about: 'judge the transcript of this call instead: call_id or reference_id' },
    input: { value: 'TEXT', about: 'input that the text responds to' },
    context: { value: 'TEXT', about: 'background for the judge' },
    model: { value: 'MODEL', about: 'model id or alias (default: the model of the rubric)' },
    samples: { value: 'N', about: 'number of samples, 1 to 5; the majority wins; each is billed' },
    ...API_OPTIONS,
  },
  async run({ host, values, arguments: [rubric = '', given] }) {
    if ((given === undefined) === (values.call === undefined)) {
      throw new UsageError('give either TEXT or --call (tandem judge evaluate --help explains)');
    }
    const api = openApi(host, values);
    const evaluation = await api.post<Evaluation>('/judge/evaluate', {
      ...(rubric.endsWith('.json') ? { questions: await questionsIn(rubric, host) } : await rubricOf(api, rubric)),
      output: given === '-' ? await readInput(host) : given,
      call_id: values.call,
      input: values.input,
      context: values.context,
      model: values.model,
      samples: numberOf('--samples', values.samples),
    });
    return { data: evaluation, text: describe(evaluation) };
  },
});

export const judgeCommand: Command = {
  actions: { rubrics, add, evaluate },
  notes: `Questions:
  {
    "greeting": {
      "type": "choice",
      "question": "How does the agent greet the customer?",
      "criteria": { "by_name": "With the name.", "plain": "Without a name.", "none": "Not at all." }
    },
    "solved": { "type": "boolean", "question": "Is the problem solved at the end?" }
  }`,
};

interface Rubric {
  id: string;
  name: string;
  question_count: number;
  shared: boolean;
  is_mine: boolean;
}

interface Evaluation {
  model: string;
  results: Record<string, { answer: string; reason: string; confidence: number; evidence: string[] }>;
  summary: string;
  usage: { total_tokens: number };
  cost_usd: number;
}

const PAGE = 100;
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

async function listRubrics(api: Api, { onlyMine }: { onlyMine?: true | undefined } = {}): Promise<Rubric[]> {
  const all: Rubric[] = [];
  for (let page = 1; ; page++) {
    const query = new URLSearchParams({ page: String(page), limit: String(PAGE), ...(onlyMine && { mine: 'true' }) });
    const { rubrics } = await api.get<{ rubrics: Rubric[] }>(`/judge/rubrics?${query}`);
    all.push(...rubrics);
    if (rubrics.length < PAGE) return all;
  }
}

/** @throws CommandError */
async function rubricOf(api: Api, given: string): Promise<{ rubric_id: string }> {
  if (UUID.test(given)) return { rubric_id: given };
  const all = await listRubrics(api);
  const named = all.find(({ name }) => name.toLowerCase() === given.trim().toLowerCase());
  if (named !== undefined) return { rubric_id: named.id };
  const meant = didYouMean(
    given,
    all.map(({ name }) => name),
  );
  throw new CommandError(
    'RUBRIC_NOT_FOUND',
    `there is no rubric ${JSON.stringify(given)}${meant || ':'} tandem judge rubrics lists all.`,
  );
}

/** @throws CommandError */
async function questionsIn(path: string, host: CommandHost): Promise<object> {
  const text = await readFile(pathIn(host.cwd(), path), 'utf8').catch((cause: unknown) => {
    throw new CommandError('NO_SUCH_FILE', `${path} cannot be read: ${(cause as Error).message}`, { cause });
  });
  try {
    const questions: unknown = JSON.parse(text);
    if (isObject(questions)) return questions;
  } catch {
    // Reported below.
  }
  throw new CommandError(
    'NO_QUESTIONS',
    `${path} is not a JSON object of questions. tandem judge --help shows an example.`,
  );
}

function describe({ results, summary, model, usage, cost_usd }: Evaluation): string {
  const rows = Object.entries(results).map(([key, { answer, confidence, reason }]) => [
    ...[oneLine(key), oneLine(answer), `${Math.round(100 * confidence)} %`, oneLine(reason)],
  ]);
  const quotes = Object.entries(results).flatMap(([key, { evidence }]) =>
    evidence.map((quote) => `${oneLine(key)}: “${oneLine(quote)}”`),
  );
  return [
    table(['QUESTION', 'ANSWER', 'SURE', 'REASON'], rows, 'Nothing was asked.'),
    ...(quotes.length === 0 ? [] : ['', ...quotes]),
    ...(summary === '' ? [] : ['', oneLine(summary)]),
    '',
    `${oneLine(model)}, ${usage.total_tokens} tokens, ${cost_usd} USD`,
  ].join('\n');
}
