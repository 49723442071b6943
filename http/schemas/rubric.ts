import { type Static, type TSchema, Type } from 'typebox';
import {
  type PlainQuestions,
  plainQuestions,
  QUESTION_TYPES,
  type RubricQuestions,
  readQuestions,
} from '../../language/judge/rubric.ts';
import type { RubricRow } from '../../storage/queries/rubrics.ts';
import { type InvalidField, validationFailed } from '../validation.ts';
import { nullable, TimeSchema } from './envelope.ts';

const LINES = '^[^\\u0000\\ud800-\\udfff]*$';
/** Rejects blank names, control characters and lone surrogates. */
const NAME = '^(?=.*\\S)[^\\u0000-\\u001f\\u007f\\ud800-\\udfff]*$';
const MAX_QUESTIONS = 20;
const MAX_ANSWERS = 20;

const NameSchema = Type.String({
  minLength: 1,
  maxLength: 100,
  pattern: NAME,
  description: 'Name: one line, unique in the workspace. Surrounding spaces are removed.',
  examples: ['Support call'],
});
const DescriptionSchema = Type.String({
  maxLength: 2000,
  pattern: LINES,
  description: 'Description. An empty string clears it.',
  examples: ['How an agent opens a call and whether they help.'],
});
export const ModelNameSchema = nullable(
  Type.String({
    minLength: 1,
    maxLength: 200,
    pattern: NAME,
    description:
      'Model: an id or alias from GET /judge/models. Default: the default judge model. The model of a rubric is resolved when the rubric is used.',
    examples: ['jev-latest'],
  }),
);

const QUESTIONS_EXAMPLE = {
  greeting: {
    type: 'choice',
    question: 'How does the agent greet the customer?',
    criteria: { by_name: 'By name.', plain: 'Without a name.', none: 'Not at all.' },
  },
  solved: { type: 'boolean', question: 'Is the problem solved at the end of the call?' },
};

const QuestionSchema = Type.Object(
  {
    type: Type.Enum([...QUESTION_TYPES], {
      description: '`choice`: one of the criteria. `boolean`: `yes` or `no`.',
    }),
    question: Type.Optional(
      Type.String({
        maxLength: 1000,
        pattern: LINES,
        description: 'Question. Default: its key. Tandem extension.',
      }),
    ),
    criteria: Type.Optional(
      Type.Record(Type.String({ pattern: keyPattern() }), Type.String({ maxLength: 1000, pattern: LINES }), {
        maxProperties: MAX_ANSWERS,
        additionalProperties: false,
        description: `Meaning of each answer, for 2 to ${MAX_ANSWERS} answers. Optional for a \`boolean\`, which only takes \`yes\` and \`no\`.`,
      }),
    ),
  },
  { additionalProperties: false },
);

export const QuestionsSchema = Type.Record(Type.String({ pattern: keyPattern() }), QuestionSchema, {
  minProperties: 1,
  maxProperties: MAX_QUESTIONS,
  additionalProperties: false,
  description: `Questions by key, 1 to ${MAX_QUESTIONS}. A key is one line of at most 100 characters.`,
  examples: [QUESTIONS_EXAMPLE],
});

const SharedSchema = Type.Boolean({
  description: 'Share the rubric with the whole workspace. Requires the admin or owner role.',
  examples: [false],
});

export const RubricBody = Type.Object(
  {
    name: NameSchema,
    description: Type.Optional(nullable(DescriptionSchema)),
    model: Type.Optional(ModelNameSchema),
    questions: QuestionsSchema,
    shared: Type.Optional(SharedSchema),
  },
  {
    additionalProperties: false,
    examples: [
      { name: 'Support call', description: 'How an agent opens a call.', questions: QUESTIONS_EXAMPLE, shared: true },
    ],
  },
);

export const RubricPatchBody = Type.Object(
  {
    name: Type.Optional(NameSchema),
    description: Type.Optional(nullable(DescriptionSchema)),
    model: Type.Optional(ModelNameSchema),
    questions: Type.Optional(QuestionsSchema),
    shared: Type.Optional(SharedSchema),
  },
  { additionalProperties: false, minProperties: 1, examples: [{ description: 'How an agent opens and ends a call.' }] },
);

export const RubricSchema: TSchema = Type.Object({
  id: Type.String({ format: 'uuid', examples: ['c0a8e7d2-4a3b-4c1d-9e8f-1a2b3c4d5e6f'] }),
  name: NameSchema,
  description: nullable(Type.String({ description: 'Description.', examples: ['How an agent opens a call.'] })),
  model: nullable(Type.String({ description: 'Model id or alias, as sent.', examples: ['jev-latest'] })),
  questions: Type.Object(
    {},
    { additionalProperties: true, description: 'Questions by key.', examples: [QUESTIONS_EXAMPLE] },
  ),
  question_count: Type.Integer({ description: 'Number of questions.', examples: [2] }),
  shared: SharedSchema,
  is_mine: Type.Boolean({ description: 'True if you created the rubric.', examples: [true] }),
  created_at: TimeSchema,
  updated_at: TimeSchema,
});

export interface ParsedRubricFields {
  name?: string;
  description?: string | null;
  model?: string | null;
  questions?: Record<string, unknown>;
  shared?: boolean;
}

export function readRubricFields(body: Static<typeof RubricPatchBody>): ParsedRubricFields {
  const { name, description, model, questions, shared } = body as ParsedRubricFields;
  return {
    ...(name !== undefined && { name: name.trim() }),
    ...(description !== undefined && { description: description === '' ? null : description }),
    ...(model !== undefined && { model }),
    ...(questions !== undefined && { questions: plainQuestions(readRubricQuestions(questions)) }),
    ...(shared !== undefined && { shared }),
  };
}

/** @throws TandemError VALIDATION_FAILED for a question with fewer than two answers */
export function readRubricQuestions(questions: Record<string, unknown>): RubricQuestions {
  const plain = questions as PlainQuestions;
  const invalid = Object.entries(plain).flatMap(([key, { type, criteria }]): InvalidField[] => {
    const answers = Object.keys(criteria ?? {});
    const path = `questions.${key}.criteria`.slice(0, 128);
    if (type === 'boolean') {
      const isKnown = answers.every((answer) => answer === 'yes' || answer === 'no');
      return isKnown ? [] : [{ path, message: 'must have only the answers yes and no, because the type is boolean' }];
    }
    return answers.length >= 2 ? [] : [{ path, message: 'must have at least two answers' }];
  });
  if (invalid.length > 0) throw validationFailed(invalid);
  return readQuestions(plain);
}

export function presentRubric(row: RubricRow, { userId }: { userId: number }) {
  const { id, name, description, model, questions, questionCount, shared } = row;
  return {
    ...{ id, name, description, model, questions, question_count: questionCount, shared },
    is_mine: row.createdByUserId === userId,
    created_at: row.createdAt.toISOString(),
    updated_at: row.updatedAt.toISOString(),
  };
}

function keyPattern(): string {
  return '^(?=.*\\S)[^\\u0000-\\u001f\\u007f\\ud800-\\udfff]{1,100}$';
}
