import { api } from '../../app/api.ts';
import { charged } from '../charged.ts';

export interface JudgeForm {
  candidate: 'call' | 'text';
  callId: string;
  transcript: string;
  rubricId: string | null;
  /** Null: the rubric's model. */
  model: string | null;
  samples: number;
}

/** Body of `POST /judge/evaluate`. */
export function evaluationRequestOf({ candidate, callId, transcript, rubricId, model, samples }: JudgeForm) {
  return {
    ...(rubricId !== null && { rubric_id: rubricId }),
    ...(candidate === 'call' ? { call_id: callId.trim() } : { transcript }),
    ...(model !== null && { model }),
    ...(samples > 1 && { samples }),
  };
}

/** @throws ApiError */
export async function evaluate(form: JudgeForm) {
  const { body, ...charge } = await charged(api.POST('/judge/evaluate', { body: evaluationRequestOf(form) }));
  return { ...charge, ...body.data };
}

export type Evaluation = Awaited<ReturnType<typeof evaluate>>;
