/**
 * Language models, whoever runs them: a server that speaks OpenAI's protocol, or a model file on this machine. With
 * none configured every request for one is refused with `LLM_NOT_CONFIGURED`; nothing here ever makes an answer up.
 */
export interface LanguageModels {
  /** What there is to answer with. Asked of the engines at most every five minutes; [] when none is configured. */
  list(): Promise<{ models: readonly LanguageModel[]; cached: boolean }>;
  /** `svc-tiny` and other names that stand for a model, each with the id it stands for at the moment. */
  aliases(): Promise<ReadonlyMap<string, string>>;
  /**
   * The model of that id or alias; null: the usual one.
   * @throws TandemError `LLM_NOT_CONFIGURED`, `MODEL_NOT_FOUND`, `LLM_UNAVAILABLE` when the server cannot be asked
   */
  resolve(name: string | null): Promise<LanguageModel>;
  /**
   * What the model answers, as it is produced; the last part is `finished`, and nothing follows it. Ending the iteration
   * or aborting the signal stops the generation.
   * @throws TandemError `LLM_NOT_CONFIGURED`, `MODEL_NOT_FOUND`, `LLM_UNAVAILABLE`, `LLM_RATE_LIMITED`, `LLM_TIMEOUT`,
   * `LLM_REQUEST_REFUSED`, `CONTEXT_LENGTH_EXCEEDED`; the signal's reason
   */
  stream(request: CompletionRequest): AsyncGenerator<CompletionPart, void>;
  /** As `stream`, once it is over. */
  complete(request: CompletionRequest): Promise<Completion>;
  close(): Promise<void>;
}

export interface LanguageModel {
  /** Versioned: what an alias resolves to, and what responses name. */
  id: string;
  /** Seconds since 1970. */
  created: number;
  ownedBy: string;
  /** For a person. */
  description: string;
  /** Of prompt and answer together, in tokens; null where nobody says. */
  contextTokens: number | null;
}

export interface CompletionRequest {
  /** Id or alias; null: the usual model. */
  model: string | null;
  messages: readonly ChatMessage[];
  tools?: readonly ToolDefinition[];
  /** `none` forbids tools, `required` asks for one, a name for that one. Default `auto`. */
  toolChoice?: 'auto' | 'none' | 'required' | { name: string };
  /** The answer has to be JSON of this schema. */
  responseSchema?: { name: string; schema: JsonSchema };
  /** Default: what the model usually does. */
  temperature?: number;
  topP?: number;
  topK?: number;
  /** A model that thinks first shows it as `reasoning`. Default false. */
  enableThinking?: boolean;
  /** Most tokens to produce. */
  maxTokens?: number;
  stop?: readonly string[];
  seed?: number;
  /** False: at most one tool call in an answer. Default true. */
  parallelToolCalls?: boolean;
  /** Log probabilities of the tokens, each with so many alternatives, where the engine has them. */
  logprobs?: { alternatives: number };
  /** Until the first part, and then between parts. Default 60 000. */
  patienceMs?: number;
  /** How long to wait for a turn if the model is busy. Default: `patienceMs`. */
  turnWithinMs?: number;
  /** Attempts beside the first, before anything was produced. Default 2. */
  retries?: number;
  /** A workspace: where many wait for the model, each workspace has its turn. Default: one that has no name. */
  onBehalfOf?: string;
  signal: AbortSignal;
}

/** An object of JSON Schema, as it was given. */
export type JsonSchema = Readonly<Record<string, unknown>>;

export type ChatMessage =
  | { role: 'system' | 'user'; content: string }
  | { role: 'assistant'; content: string | null; toolCalls?: readonly ToolCall[] }
  | { role: 'tool'; content: string; toolCallId: string };

export interface ToolDefinition {
  name: string;
  description: string | null;
  parameters: JsonSchema | null;
}

export interface ToolCall {
  id: string;
  name: string;
  /** JSON, as the model wrote it: it may be anything. */
  arguments: string;
}

export type CompletionPart =
  | { type: 'text'; text: string }
  | { type: 'reasoning'; text: string }
  /** A piece of the call of that index; `id` and `name` come with its first piece. */
  | { type: 'toolCall'; index: number; id: string | null; name: string | null; arguments: string }
  /** Of text that was produced just before. */
  | { type: 'logprobs'; tokens: readonly TokenLogprob[] }
  | { type: 'finished'; reason: FinishReason; usage: TokenUsage; model: string };

/** Natural logarithm of the probability of a token. */
export interface Logprob {
  token: string;
  logprob: number;
  /** Its UTF-8 bytes; null if the engine does not say. */
  bytes: readonly number[] | null;
}

export interface TokenLogprob extends Logprob {
  /** The most likely tokens at this position. */
  alternatives: readonly Logprob[];
}

export type FinishReason = 'stop' | 'length' | 'tool_calls' | 'content_filter';

export interface TokenUsage {
  promptTokens: number;
  completionTokens: number;
  /** Counted by us, because the engine did not say. */
  isEstimated: boolean;
}

export interface Completion {
  text: string;
  reasoning: string;
  toolCalls: ToolCall[];
  finishReason: FinishReason;
  usage: TokenUsage;
  /** The versioned id. */
  model: string;
}
