/**
 * Tokens of a text as the models of OpenAI's GPT-4o family count them (o200k_base); close enough for those that count
 * otherwise: it bounds a context and stands in for a count that a server does not give.
 */
export type CountTokens = (text: string) => number;
