/**
 * Language models: those of an OpenAI-compatible server, or a model file on this machine. If none is configured, every
 * request is rejected with `LLM_NOT_CONFIGURED`; no answer is ever invented.
 */
export interface LanguageModels {
  /** Available models. The engines are queried at most every five minutes; [] if none is configured. */
  list(): Promise<{ models: readonly LanguageModel[]; cached: boolean }>;
  /** Aliases such as `svc-tiny`, each with the model id it currently resolves to. */
  aliases(): Promise<ReadonlyMap<string, string>>;
  /**
   * Resolves an id or alias; null: the default model.
   * @throws TandemError `LLM_NOT_CONFIGURED`, `MODEL_NOT_FOUND`; `LLM_UNAVAILABLE` if the server is unreachable
   */
  resolve(name: string | null): Promise<LanguageModel>;
  /**
   * Streams the model's answer; the last part is `finished`. Ending the iteration or aborting the signal stops the
   * generation.
   * @throws TandemError `LLM_NOT_CONFIGURED`, `MODEL_NOT_FOUND`, `LLM_UNAVAILABLE`, `LLM_RATE_LIMITED`, `LLM_TIMEOUT`,
   * `LLM_REQUEST_REFUSED`, `CONTEXT_LENGTH_EXCEEDED`; the signal's reason
   */
  stream(request: CompletionRequest): AsyncGenerator<CompletionPart, void>;
  /** As `stream`, but resolves with the whole answer. */
  complete(request: CompletionRequest): Promise<Completion>;
  close(): Promise<void>;
}

export interface LanguageModel {
  /** Versioned id: aliases resolve to it, and responses name it. */
  id: string;
  /** Unix time in seconds. */
  created: number;
  ownedBy: string;
  /** Shown to people. */
  description: string;
  /** Limit of prompt and answer together, in tokens; null if unknown. */
  contextTokens: number | null;
}

export interface CompletionRequest {
  /** Id or alias; null: the default model. */
  model: string | null;
  messages: readonly ChatMessage[];
  tools?: readonly ToolDefinition[];
  /** `none` forbids tools, `required` demands one, a name demands that one. Default `auto`. */
  toolChoice?: 'auto' | 'none' | 'required' | { name: string };
  responseSchema?: { name: string; schema: JsonSchema };
  /** Default: the model's own. */
  temperature?: number;
  topP?: number;
  topK?: number;
  /** Lets a reasoning model think first, as `reasoning` parts. Default false. */
  enableThinking?: boolean;
  /** Maximum tokens to produce. */
  maxTokens?: number;
  stop?: readonly string[];
  seed?: number;
  /** False: at most one tool call in an answer. Default true. */
  parallelToolCalls?: boolean;
  /** Log probabilities of the tokens, each with this number of alternatives, if the engine supports them. */
  logprobs?: { alternatives: number };
  /** Timeout until the first part, and between parts. Default 60 000. */
  patienceMs?: number;
  /** Timeout in the queue of a busy model. Default: `patienceMs`. */
  turnWithinMs?: number;
  /** Retries before the first part. Default 2. */
  retries?: number;
  /** Workspace for fair queueing: workspaces that wait for the same model take turns. Default: one shared queue. */
  onBehalfOf?: string;
  signal: AbortSignal;
}

/** JSON Schema object, unmodified. */
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
  /** JSON as the model wrote it. Not validated. */
  arguments: string;
}

export type CompletionPart =
  | { type: 'text'; text: string }
  | { type: 'reasoning'; text: string }
  /** A piece of the call with this index; only its first piece has `id` and `name`. */
  | { type: 'toolCall'; index: number; id: string | null; name: string | null; arguments: string }
  /** For the text that was produced just before. */
  | { type: 'logprobs'; tokens: readonly TokenLogprob[] }
  | { type: 'finished'; reason: FinishReason; usage: TokenUsage; model: string };

/** Natural logarithm of the probability of a token. */
export interface Logprob {
  token: string;
  logprob: number;
  /** UTF-8 bytes of the token; null if the engine omits them. */
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
  /** Counted by us, because the engine reported no usage. */
  isEstimated: boolean;
}

export interface Completion {
  text: string;
  reasoning: string;
  toolCalls: ToolCall[];
  finishReason: FinishReason;
  usage: TokenUsage;
  /** Versioned id. */
  model: string;
}
