import { number } from "../../i18n/index";

/** Format US dollars with enough digits for small amounts. */
export function money(dollars: number): string {
  const digits =
    dollars !== 0 && Math.abs(dollars) < 1 ? { maximumSignificantDigits: 2 } : { maximumFractionDigits: 2 };
  return number(dollars, { style: "currency", currency: "USD", currencyDisplay: "narrowSymbol", ...digits });
}
