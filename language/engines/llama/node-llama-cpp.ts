/**
 * The part of `node-llama-cpp` that we use. Typed here, because the package takes hundreds of megabytes and is
 * installed only to run a model file.
 */
export const LIBRARY = 'node-llama-cpp';
export const LIBRARY_VERSION = '3.22.1';

export interface LlamaLibrary {
  getLlama(options: {
    build: 'never';
    skipDownload: boolean;
    gpu: 'auto';
    progressLogs: boolean;
    maxThreads: number;
    logger: (level: string, message: string) => void;
  }): Promise<Llama>;
  LlamaChat: new (options: { contextSequence: LlamaSequence; chatWrapper: ChatWrapper }) => LlamaChat;
  resolveChatWrapper(model: LlamaModel, options: { customWrapperSettings?: object; warningLogs: boolean }): ChatWrapper;
}

export interface Llama {
  readonly gpu: string | false;
  loadModel(options: { modelPath: string }): Promise<LlamaModel>;
  createGrammarForJsonSchema(schema: object): Promise<LlamaGrammar>;
}

/** Opaque value for `LlamaChat`. */
export type LlamaGrammar = object;

export interface LlamaModel {
  readonly typeDescription: string;
  readonly trainContextSize: number;
  readonly tokenizer: object;
  createContext(options: { sequences: number; contextSize: { max: number } }): Promise<LlamaContext>;
}

interface LlamaContext {
  readonly contextSize: number;
  getSequence(): LlamaSequence;
}

export interface LlamaSequence {
  readonly tokenMeter: { getState(): TokenMeterState };
  readonly contextTokens: readonly Token[];
  readonly nextTokenIndex: number;
  adaptStateToTokens(tokens: readonly Token[], allowShift: boolean): Promise<void>;
  evaluateWithoutGeneratingNewTokens(tokens: readonly Token[]): Promise<void>;
}

interface TokenMeterState {
  usedInputTokens: number;
  usedOutputTokens: number;
}

export type Token = number;

export interface ChatWrapper {
  readonly wrapperName: string;
  generateContextState(options: {
    chatHistory: readonly HistoryItem[];
    availableFunctions: ModelFunctions | undefined;
    documentFunctionParams: boolean | undefined;
  }): { contextText: { tokenize(tokenizer: object): Token[] } };
}

export type HistoryItem =
  | { type: 'system' | 'user'; text: string }
  | { type: 'model'; response: (string | FunctionCallItem)[] };

export interface FunctionCallItem {
  type: 'functionCall';
  name: string;
  params: unknown;
  result: unknown;
}

/** Null-prototype object. */
export type ModelFunctions = Record<string, { description?: string; params?: object }>;

export interface LlamaChat {
  generateResponse(history: HistoryItem[], options: GenerateOptions): Promise<LlamaResponse>;
  dispose(options: { disposeSequence: boolean }): void;
}

interface GenerateOptions {
  signal: AbortSignal;
  maxTokens: number;
  temperature: number | undefined;
  topP: number | undefined;
  topK: number | undefined;
  seed: number | undefined;
  repeatPenalty: false;
  customStopTriggers: readonly string[];
  budgets: { thoughtTokens: number } | undefined;
  contextShift: { strategy: (options: { chatHistory: HistoryItem[] }) => { chatHistory: HistoryItem[] } };
  onResponseChunk: (chunk: ResponseChunk) => void;
  grammar?: LlamaGrammar;
  functions?: ModelFunctions;
  onFunctionCall?: (call: { functionName: string; params: unknown }) => void;
}

interface ResponseChunk {
  /** Undefined: the answer itself. */
  segmentType?: 'thought' | 'comment' | undefined;
  text: string;
}

interface LlamaResponse {
  metadata: { stopReason: string };
}
