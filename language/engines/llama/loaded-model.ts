import { availableParallelism } from 'node:os';
import { basename } from 'node:path';
import { type Answering, answer, promptOf } from './answer.ts';
import { AnswerError } from './answer-error.ts';
import {
  type ChatWrapper,
  LIBRARY,
  LIBRARY_VERSION,
  type Llama,
  type LlamaGrammar,
  type LlamaLibrary,
  type LlamaModel,
  type LlamaSequence,
  type Token,
} from './node-llama-cpp.ts';
import type { AnswerEnd, AnswerRequest, Load, Loaded } from './protocol.ts';

/** Default limit of the context: each concurrent answer takes memory for its own. */
const USUAL_MOST_CONTEXT_TOKENS = 8192;

/**
 * Threads of a computation synchronise at every step, so more threads than cores make it many times slower. One core
 * stays free for telephony.
 */
const MOST_THREADS = Math.max(1, availableParallelism() - 1);

/** A model in memory. It is never unloaded; the process ends with it. */
export class LoadedModel {
  readonly loaded: Loaded;
  readonly #library: LlamaLibrary;
  readonly #llama: Llama;
  readonly #model: LlamaModel;
  readonly #free: LlamaSequence[];
  readonly #wrappers = new Map<boolean, ChatWrapper>();

  /** @throws Error with a message for the operator */
  static async load({ modelPath, sequences, contextTokens }: Load): Promise<LoadedModel> {
    const library = await importLibrary();
    const complaints: string[] = [];
    try {
      const llama = await library.getLlama({
        build: 'never',
        skipDownload: true,
        gpu: 'auto',
        progressLogs: false,
        maxThreads: MOST_THREADS,
        logger: (level, message) => {
          if (level === 'error' || level === 'fatal') complaints.push(message.trim());
        },
      });
      const model = await llama.loadModel({ modelPath });
      const trained = Math.max(1, model.trainContextSize);
      const max = Math.min(trained, contextTokens ?? USUAL_MOST_CONTEXT_TOKENS);
      const context = await model.createContext({ sequences, contextSize: { max } });
      return new LoadedModel({
        library,
        llama,
        model,
        free: Array.from({ length: sequences }, () => context.getSequence()),
        // The context may be padded for the hardware, up to what the model was trained for.
        loaded: { contextTokens: Math.min(context.contextSize, trained), description: describe(llama, model) },
      });
    } catch (error) {
      throw new Error(complaintOf(modelPath, [messageOf(error), ...complaints]), { cause: error });
    }
  }

  private constructor(parts: {
    library: LlamaLibrary;
    llama: Llama;
    model: LlamaModel;
    free: LlamaSequence[];
    loaded: Loaded;
  }) {
    this.loaded = parts.loaded;
    this.#library = parts.library;
    this.#llama = parts.llama;
    this.#model = parts.model;
    this.#free = parts.free;
    // Selects the template now, because comparing it with those of the library takes a second.
    this.#wrapper(false);
  }

  /** @throws AnswerError; the signal's reason */
  async answer(request: AnswerRequest, { signal, emit }: Pick<Answering, 'signal' | 'emit'>): Promise<AnswerEnd> {
    const { contextTokens } = this.loaded;
    const wrapper = this.#wrapper(request.enableThinking);
    const prompt = promptOf(request, { model: this.#model, wrapper, contextTokens });
    const grammar = prompt.form.kind === 'json' ? await this.#grammarOf(prompt.form.grammar) : null;
    const sequence = this.#take(prompt.tokens);
    const chat = new this.#library.LlamaChat({ contextSequence: sequence, chatWrapper: wrapper });
    try {
      return await answer(prompt, { chat, sequence, contextTokens, grammar, signal, emit });
    } finally {
      chat.dispose({ disposeSequence: false });
      this.#free.push(sequence);
    }
  }

  /** Takes the free sequence that shares the longest prefix with the prompt, such as the previous turn. */
  #take(tokens: readonly Token[]): LlamaSequence {
    const [first, ...others] = this.#free;
    if (first === undefined)
      throw new AnswerError('unavailable', 'more answers are asked for than are produced at once');
    const best = others.reduce(
      (best, sequence) => (commonTokens(sequence, tokens) > commonTokens(best, tokens) ? sequence : best),
      first,
    );
    this.#free.splice(this.#free.indexOf(best), 1);
    return best;
  }

  #wrapper(enableThinking: boolean): ChatWrapper {
    let wrapper = this.#wrappers.get(enableThinking);
    if (wrapper === undefined) {
      wrapper = this.#library.resolveChatWrapper(this.#model, {
        ...(enableThinking ? {} : { customWrapperSettings: WITHOUT_THINKING }),
        warningLogs: false,
      });
      this.#wrappers.set(enableThinking, wrapper);
    }
    return wrapper;
  }

  async #grammarOf(schema: object): Promise<LlamaGrammar> {
    try {
      return await this.#llama.createGrammarForJsonSchema(schema);
    } catch (error) {
      throw new AnswerError('refused', 'no grammar can be made of the JSON schema', { cause: error });
    }
  }
}

/** Option of each model family that disables reasoning. */
const WITHOUT_THINKING = {
  qwen: { thoughts: 'discourage' },
  gemma4: { reasoning: false },
  harmony: { reasoningEffort: 'low' },
  seed: { thinkingBudget: 0 },
  muse: { reasoningStrength: 'low' },
  jinjaTemplate: { reasoning: false },
};

async function importLibrary(): Promise<LlamaLibrary> {
  try {
    return (await import(LIBRARY)) as LlamaLibrary;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw error;
    const command = `npm install --no-save --ignore-scripts ${LIBRARY}@${LIBRARY_VERSION}`;
    throw new Error(`model files need ${LIBRARY}, which \`${command}\` installs`, {
      cause: error,
    });
  }
}

function commonTokens({ contextTokens }: LlamaSequence, tokens: readonly Token[]): number {
  const different = contextTokens.findIndex((token, index) => token !== tokens[index]);
  return different < 0 ? contextTokens.length : different;
}

function describe(llama: Llama, { typeDescription }: LlamaModel): string {
  return `${typeDescription}, on this machine (${llama.gpu === false ? 'CPU' : llama.gpu})`.slice(0, 200);
}

/** One line without paths of this machine, because API clients see it. */
function complaintOf(modelPath: string, complaints: readonly string[]): string {
  const name = basename(modelPath);
  const reasons = complaints.slice(0, 3).join('; ').replaceAll(modelPath, name).replace(/\s+/g, ' ');
  return `LLM_MODEL_PATH: ${name} cannot be loaded: ${reasons}`.slice(0, 500);
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
