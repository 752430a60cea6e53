// Drives a page by lines of JSON on standard input, one answer per line. Started by vscode.py.
//   node vscode_driver.mjs FOLDER_OF_PLAYWRIGHT CHROMIUM PROFILE DEADLINE_MS
import { createRequire } from "module";
import { createInterface } from "readline";

const [, , driver, executablePath, profile, deadline] = process.argv;
const timeout = Number(deadline);
const { chromium } = createRequire(driver + "/")("playwright-core");
const args = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"];
const context = await chromium.launchPersistentContext(profile, {
  executablePath, args, timeout, headless: true, viewport: { width: 1000, height: 620 },
});
const page = context.pages()[0] ?? (await context.newPage());
page.setDefaultTimeout(timeout);

const run = {
  open: ({ url }) => page.goto(url).then(() => null),
  type: ({ text }) => page.keyboard.type(text).then(() => null),
  press: ({ key }) => page.keyboard.press(key).then(() => null),
  look: ({ code }) => page.evaluate(code),
  wait: ({ code }) => page.waitForFunction(code).then(() => null),
  click: ({ selector }) => page.click(selector).then(() => null),
  shot: ({ path }) => page.screenshot({ path }).then(() => null),
  beside: async () => {
    const other = context.pages().find((one) => one !== page) ?? (await context.waitForEvent("page", { timeout }));
    await other.waitForSelector("body *", { timeout });
    const text = await other.innerText("body");
    await other.close();
    return text;
  },
  full: ({ path }) => page.screenshot({ path, fullPage: true }).then(() => null),
};

for await (const line of createInterface({ input: process.stdin })) {
  const message = JSON.parse(line);
  let answer;
  try {
    answer = { value: (await run[message.op](message)) ?? null };
  } catch (error) {
    answer = { error: String(error).split("\n")[0] };
  }
  process.stdout.write(JSON.stringify(answer) + "\n");
}
await context.close();
process.exit(0);
