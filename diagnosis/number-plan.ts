import type { Config } from '../config.ts';
import { type Finding, ok, warn } from './finding.ts';

export function checkNumberPlan({ numberPlan }: Pick<Config, 'numberPlan'>): Finding {
  if (numberPlan === 'any') {
    return warn(
      'NUMBER_PLAN',
      'Calls to every country are allowed.',
      'List the countries that you call: NUMBER_PLAN=IN,US.',
    );
  }
  const countries = numberPlan.map((country) => (country === 'IN' ? 'IN (mobile numbers)' : country));
  return ok('NUMBER_PLAN', `calls to ${countries.join(', ')}`);
}
