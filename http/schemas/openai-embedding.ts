import { type Static, Type } from 'typebox';
import type { EmbeddedTexts } from '../../actors/memory/text-embedding.ts';
import type { TandemError } from '../../machines/errors.ts';
import { Slice } from '../../runtime/slices.ts';
import { compileCheck, type InvalidField, validationFailed } from '../validation.ts';
import { responseOf } from './envelope.ts';

/** Default names of OpenAI's clients. */
export const OPENAI_EMBEDDING_MODELS = ['text-embedding-3-small', 'text-embedding-3-large', 'text-embedding-ada-002'];
const MAX_TEXTS = 2048;

const TextSchema = Type.String({
  minLength: 1,
  maxLength: 20_000,
  pattern: '\\S',
  description: 'Text of up to 20000 characters. Must not be blank.',
});

const TextsSchema = Type.Array(TextSchema, { minItems: 1, maxItems: MAX_TEXTS });

export const EmbeddingsBody = Type.Object(
  {
    input: Type.Union([TextSchema, TextsSchema], {
      description: `Text to embed, or an array of up to ${MAX_TEXTS} texts. Token arrays are rejected.`,
      examples: [['Where is my parcel?', 'The parcel arrives on Monday.']],
    }),
    model: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 200,
        description:
          'The model of type `embedding` from GET /v1/models. OpenAI’s names `text-embedding-3-small`, `text-embedding-3-large` and `text-embedding-ada-002` select it, too.',
        examples: ['text-embedding-3-small'],
      }),
    ),
    dimensions: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 65_536,
        description: 'Must be the number of dimensions of the model, because it makes embeddings of one length only.',
      }),
    ),
    encoding_format: Type.Optional(
      Type.Enum(['float', 'base64'], {
        default: 'float',
        description: '`base64` encodes 32-bit floats, little-endian.',
      }),
    ),
    user: Type.Optional(Type.String({ maxLength: 512, description: 'Ignored.' })),
  },
  {
    additionalProperties: false,
    examples: [{ model: 'text-embedding-3-small', input: ['Where is my parcel?', 'The parcel arrives on Monday.'] }],
  },
);

const checkList = compileCheck(
  Type.Object({ ...EmbeddingsBody.properties, input: TextsSchema }, { additionalProperties: false }),
);

/** Validates a body with errors that name the invalid text, unlike those of the schema's union. */
export function checkEmbeddingsBody(body: unknown): TandemError | null {
  const input: unknown = (body as { input?: unknown } | null | undefined)?.input;
  if (typeof input === 'string') {
    const refusal = checkList({ ...(body as object), input: [input] });
    if (refusal === null) return null;
    const details = refusal.details as InvalidField[];
    return validationFailed(
      details.map(({ path, message }) => ({ path: path.replace(/^input\.0$/, 'input'), message })),
    );
  }
  if (hasTokens(input)) return rejected('must be text. Send strings instead of token arrays');
  if (input !== undefined && !Array.isArray(input)) return rejected('must be a string or an array of strings');
  return checkList(body);
}

function rejected(message: string): TandemError {
  return validationFailed([{ path: 'input', message }]);
}

/** True for `[1, 2]` and `[[1, 2]]`, which OpenAI accepts as tokens of its models. */
function hasTokens(input: unknown): boolean {
  if (!Array.isArray(input)) return false;
  return input.some((item) => typeof item === 'number' || (Array.isArray(item) && typeof item[0] === 'number'));
}

/** Returns JSON, written in slices: ten megabytes at once would block the thread for half a second. */
export async function presentEmbeddings(
  { embeddings, tokens }: Pick<EmbeddedTexts, 'embeddings' | 'tokens'>,
  { model, format }: { model: string; format: NonNullable<Static<typeof EmbeddingsBody>['encoding_format']> },
): Promise<string> {
  const slice = new Slice();
  const data: string[] = [];
  for (const [index, vector] of embeddings.entries()) {
    if (slice.isOver) await slice.rest();
    const embedding = format === 'base64' ? base64Of(vector) : [...vector];
    data.push(JSON.stringify({ object: 'embedding', index, embedding }));
  }
  const rest = JSON.stringify({ model, usage: { prompt_tokens: tokens, total_tokens: tokens } });
  return `{"object":"list","data":[${data.join(',')}],${rest.slice(1)}`;
}

function base64Of(vector: Float32Array): string {
  const bytes = Buffer.alloc(4 * vector.length);
  for (const [index, value] of vector.entries()) bytes.writeFloatLE(value, 4 * index);
  return bytes.toString('base64');
}

const TokensSchema = Type.Integer({ description: 'Tokens of the input, as Tandem counts them.', examples: [12] });

export const EmbeddingsResponse = responseOf({
  ...Type.Object(
    {
      object: Type.Literal('list'),
      data: Type.Array(
        Type.Object({
          object: Type.Literal('embedding'),
          index: Type.Integer({ description: 'Index of the text in `input`.', examples: [0] }),
          embedding: Type.Union([Type.Array(Type.Number()), Type.String()], {
            description: 'Vector of length 1, as numbers or in base64.',
            examples: [[0.036, -0.018, 0.999]],
          }),
        }),
      ),
      model: Type.String({
        description: 'Name of the embedder. Embeddings of different names cannot be compared.',
        examples: ['openai:text-embedding-3-small'],
      }),
      usage: Type.Object({ prompt_tokens: TokensSchema, total_tokens: TokensSchema }),
    },
    { description: 'The embeddings, in the order of the input.' },
  ),
});
