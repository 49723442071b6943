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
/** Not blank, neither control characters nor halves of surrogate pairs. */
const NAME = '^(?=.*\\S)[^\\u0000-\\u001f\\u007f\\ud800-\\udfff]*$';
const MOST_QUESTIONS = 20;
const MOST_ANSWERS = 20;

const NameSchema = Type.String({
  minLength: 1,
  maxLength: 100,
  pattern: NAME,
  description: 'One line, unique in the workspace; spaces around it do not count.',
  examples: ['Support call'],
});
const DescriptionSchema = Type.String({
  maxLength: 2000,
  pattern: LINES,
  description: 'Any text; an empty one clears it.',
  examples: ['How an agent opens a call and whether they help.'],
});
export const ModelNameSchema = nullable(
  Type.String({
    minLength: 1,
    maxLength: 200,
    pattern: NAME,
    description:
      'An id or alias of GET /judge/models; null or none: the usual model. Of a rubric it is looked up when it is used, for models come and go.',
    examples: ['jev-latest'],
  }),
);

const QUESTIONS_EXAMPLE = {
  greeting: {
    type: 'choice',
    question: 'How does the agent greet the customer?',
    criteria: { by_name: 'With the name of the customer.', plain: 'Without a name.', none: 'Not at all.' },
  },
  solved: { type: 'boolean', question: 'Is the problem solved at the end of the call?' },
};

const QuestionSchema = Type.Object(
  {
    type: Type.Enum([...QUESTION_TYPES], {
      description: '`choice`: one of the criteria. `boolean`: a choice of `yes` and `no`.',
    }),
    question: Type.Optional(
      Type.String({
        maxLength: 1000,
        pattern: LINES,
        description: 'Any text that says what is asked; without it the key does. Beyond the specification.',
      }),
    ),
    criteria: Type.Optional(
      Type.Record(Type.String({ pattern: keyPattern() }), Type.String({ maxLength: 1000, pattern: LINES }), {
        maxProperties: MOST_ANSWERS,
        additionalProperties: false,
        description: `What each answer means: 2 to ${MOST_ANSWERS} answers. Of a \`boolean\` only \`yes\` and \`no\`, which may be left out.`,
      }),
    ),
  },
  { additionalProperties: false },
);

export const QuestionsSchema = Type.Record(Type.String({ pattern: keyPattern() }), QuestionSchema, {
  minProperties: 1,
  maxProperties: MOST_QUESTIONS,
  additionalProperties: false,
  description: `Questions by key, 1 to ${MOST_QUESTIONS}: a key is one line of at most 100 characters.`,
  examples: [QUESTIONS_EXAMPLE],
});

const SharedSchema = Type.Boolean({
  description: 'Whether all of the workspace may see and use it. Only owners and admins set it to true.',
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
  description: nullable(Type.String({ examples: ['How an agent opens a call.'] })),
  model: nullable(Type.String({ description: 'As it was given.', examples: ['jev-latest'] })),
  questions: Type.Object({}, { additionalProperties: true, examples: [QUESTIONS_EXAMPLE] }),
  question_count: Type.Integer({ examples: [2] }),
  shared: SharedSchema,
  is_mine: Type.Boolean({ description: 'Whether the caller made it.', examples: [true] }),
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

/** Those fields that were sent. @throws TandemError VALIDATION_FAILED */
export function readRubricFields(body: Static<typeof RubricPatchBody>): ParsedRubricFields {
  const { name, description, model, questions, shared } = body as ParsedRubricFields;
  return {
    ...(name !== undefined && { name: name.trim() }),
    ...(description !== undefined && { description: description === '' ? null : description }),
    ...(model !== undefined && { model }),
    ...(questions !== undefined && { questions: plainQuestions(readRubricQuestions(questions)) as never }),
    ...(shared !== undefined && { shared }),
  };
}

/** @throws TandemError VALIDATION_FAILED for a question that has no choice */
export function readRubricQuestions(questions: Record<string, unknown>): RubricQuestions {
  const plain = questions as PlainQuestions;
  const invalid = Object.entries(plain).flatMap(([key, { type, criteria }]): InvalidField[] => {
    const answers = Object.keys(criteria ?? {});
    const path = `questions.${key}.criteria`.slice(0, 128);
    if (type === 'boolean') {
      const isKnown = answers.every((answer) => answer === 'yes' || answer === 'no');
      return isKnown ? [] : [{ path, message: 'of a boolean has the answers yes and no alone' }];
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
