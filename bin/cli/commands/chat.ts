import { createInterface } from 'node:readline/promises';
import { API_OPTIONS, openApi } from '../api-access.ts';
import type { Api } from '../api-client.ts';
import { type Command, CommandError, defineAction, type Outcome, UsageError } from '../command.ts';
import type { CommandHost } from '../host.ts';
import { numberOf } from '../option-values.ts';
import { readInput } from '../standard-input.ts';
import { printable, type Terminal } from '../terminal.ts';

const PATH = '/v1/chat/completions';

const chat = defineAction({
  summary: 'Ask a language model and stream its answer. Billed per token.',
  parameters: [
    {
      name: 'MESSAGE',
      about: 'message; - reads standard input; omit it in a terminal for a conversation',
      optional: true,
    },
  ],
  options: {
    model: { value: 'MODEL', about: 'model id or alias (default: the default model of the server)' },
    system: { value: 'TEXT', about: 'system prompt' },
    chat: { value: 'CHAT', about: 'continue this chat' },
    'no-save': { about: 'do not store the chat' },
    thinking: { about: 'enable thinking and print it' },
    'max-tokens': { value: 'N', about: 'maximum length of the answer in tokens' },
    correct: { about: 'correct the message instead of answering it' },
    replace: { value: 'TERM=TEXT', about: 'with --correct: replace a term', multiple: true },
    tone: { value: 'TONE', about: 'with --correct: tone, such as professional or casual' },
    ...API_OPTIONS,
  },
  async run({ host, values, arguments: [given], terminal }) {
    const isConversation = given === undefined && host.stdin.isTTY === true;
    refuseContradictions(values, { isConversation, json: terminal.json });
    const asker = new Asker(openApi(host, values), { values, terminal });
    if (isConversation) return await converse(asker, { host, terminal });
    const message = given === undefined || given === '-' ? await readInput(host) : given;
    if (message.trim() === '') throw new UsageError('MESSAGE is empty (tandem chat --help explains)');
    const answer = await asker.ask(message);
    // A pipe receives only the answer.
    if (host.stdout.isTTY) terminal.line(terminal.paint('dim', lastLine(answer)));
    return { data: answer };
  },
});

export const chatCommand: Command = {
  action: chat,
  notes: `Examples:
  tandem chat 'What is a tandem exchange?'
  tandem chat --chat chat_3f0a9f0e-8f0b-4c1e-9a59-3c7a5f6f2f11 'And who built the first?'
  tandem chat --correct --replace 'tandem=Tandem' 'we dont ship tandem on monday'
  tandem chat --system 'Sum it up in a sentence.' - < report.txt`,
};

interface Values {
  model?: string;
  system?: string;
  chat?: string;
  'no-save'?: true;
  thinking?: true;
  'max-tokens'?: string;
  correct?: true;
  replace?: string[];
  tone?: string;
}

function refuseContradictions(
  values: Values,
  { isConversation, json }: { isConversation: boolean; json: boolean },
): void {
  if (isConversation && (json || values.correct)) {
    throw new UsageError('MESSAGE is missing: --json and --correct need one (see tandem chat --help)');
  }
  const conflicting = values.correct
    ? (['system', 'chat', 'thinking', 'max-tokens'] as const)
    : (['replace', 'tone'] as const);
  for (const option of conflicting) {
    if (values[option] !== undefined) {
      throw new UsageError(`--${option} ${values.correct ? 'does not go with' : 'needs'} --correct`);
    }
  }
}

/** Answers line by line until the input ends. Prints errors and goes on. */
async function converse(
  asker: Asker,
  { host: { stdin, stdout }, terminal }: { host: CommandHost; terminal: Terminal },
): Promise<Outcome> {
  let hasEnded = false;
  const lines = createInterface({ input: stdin, output: stdout, prompt: terminal.paint('bold', '> ') });
  terminal.line(terminal.paint('dim', 'An empty line changes nothing; Ctrl-D ends.'));
  lines.once('close', () => {
    hasEnded = true;
  });
  lines.prompt();
  for await (const line of lines) {
    if (line.trim() !== '') {
      try {
        const answer = await asker.ask(line);
        terminal.line(terminal.paint('dim', lastLine(answer)));
      } catch (error) {
        if (!(error instanceof CommandError)) throw error;
        terminal.line(terminal.paint('red', error.message));
      }
    }
    // After the input ends, lines typed ahead are still answered.
    if (!hasEnded) lines.prompt();
  }
  terminal.line('');
  return { data: { chat_id: asker.chatId } };
}

interface ChatAnswer {
  chat_id: string | null;
  model: string;
  text: string;
  reasoning: string | null;
  finish_reason: string | null;
  usage: { prompt_tokens: number; completion_tokens: number; total_tokens: number } | null;
  cost_usd: string | null;
}

interface Frame {
  type?: 'chat_id' | 'done' | 'error';
  chat_id?: string;
  model: string;
  choices?: { delta: { content?: string; reasoning_content?: string }; finish_reason: string | null }[];
  usage?: ChatAnswer['usage'];
  billing?: { 'x-credit-charged': string } | null;
  code?: string;
  message?: string;
}

/** Asks in one chat, which the first answer creates. */
class Asker {
  readonly #api: Api;
  readonly #values: Values;
  readonly #terminal: Terminal;
  /** Null before the first answer. */
  chatId: string | null;

  constructor(api: Api, { values, terminal }: { values: Values; terminal: Terminal }) {
    this.#api = api;
    this.#values = values;
    this.#terminal = terminal;
    this.chatId = values.chat ?? null;
  }

  /** Streams the answer to the terminal. @throws CommandError */
  async ask(message: string): Promise<ChatAnswer> {
    const answer: ChatAnswer = {
      ...{ chat_id: this.chatId, model: '', text: '', reasoning: null },
      ...{ finish_reason: null, usage: null, cost_usd: null },
    };
    try {
      for await (const frame of this.#api.frames<Frame>(PATH, this.#bodyOf(message))) this.#take(answer, frame);
    } catch (error) {
      if (answer.text !== '' || answer.reasoning !== null) this.#endLine(answer.text);
      throw error;
    }
    this.#endLine(answer.text);
    if (!this.#values['no-save']) this.chatId = answer.chat_id;
    return answer;
  }

  #take(answer: ChatAnswer, frame: Frame): void {
    if (frame.type === 'error') throw brokenOff(frame);
    if (frame.type === 'chat_id') answer.chat_id = frame.chat_id ?? null;
    answer.model = frame.model;
    answer.usage = frame.usage ?? answer.usage;
    answer.cost_usd = frame.billing?.['x-credit-charged'] ?? answer.cost_usd;
    for (const { delta, finish_reason } of frame.choices ?? []) {
      this.#write(answer, delta);
      answer.finish_reason = finish_reason ?? answer.finish_reason;
    }
  }

  #bodyOf(message: string): object {
    const values = this.#values;
    const common = { model: values.model, stream: true, save_chat: values['no-save'] ? false : undefined };
    if (values.correct) {
      return { ...common, text: message, dictionary: values.replace?.map(replacementOf), style: { tone: values.tone } };
    }
    // A continued chat already has its system prompt.
    const omitsSystemPrompt = values.system === undefined || (this.chatId !== null && values.chat === undefined);
    return {
      ...common,
      chat_id: this.chatId ?? undefined,
      messages: [
        ...(omitsSystemPrompt ? [] : [{ role: 'system', content: values.system }]),
        { role: 'user', content: message },
      ],
      max_tokens: numberOf('--max-tokens', values['max-tokens']),
      chat_template_kwargs: values.thinking ? { enable_thinking: true } : undefined,
    };
  }

  #write(
    answer: ChatAnswer,
    { content = '', reasoning_content: thought = '' }: { content?: string; reasoning_content?: string },
  ): void {
    if (thought !== '') {
      answer.reasoning = (answer.reasoning ?? '') + thought;
      this.#terminal.write(this.#terminal.paint('dim', printable(thought)));
    }
    if (content === '') return;
    if (answer.text === '' && answer.reasoning !== null) this.#terminal.write('\n\n');
    answer.text += content;
    this.#terminal.write(printable(content));
  }

  #endLine(text: string): void {
    if (!text.endsWith('\n')) this.#terminal.write('\n');
  }
}

function brokenOff({ code = 'BROKEN_OFF', message = 'the answer was broken off' }: Frame): CommandError {
  return new CommandError(code, `${message} (${code})`);
}

function lastLine({ chat_id, usage, cost_usd, finish_reason }: ChatAnswer): string {
  return [
    ...(finish_reason === 'length' ? ['it had no room for more'] : []),
    ...(usage === null ? [] : [`${usage.total_tokens} tokens`]),
    ...(cost_usd === null ? [] : [`${cost_usd} USD`]),
    ...(chat_id === null ? [] : [`--chat ${chat_id}`]),
  ].join(', ');
}

function replacementOf(given: string): { term: string; replacement: string } {
  const at = given.indexOf('=');
  if (at < 1) throw new UsageError(`--replace takes TERM=TEXT, not ${JSON.stringify(given)}`);
  return { term: given.slice(0, at), replacement: given.slice(at + 1) };
}
