using System;
using System.Collections.Generic;
using System.Linq;

namespace Demo.Text
{
    /// <summary>Counts words; don't feed it <c>null</c>.</summary>
    public static class WordCount
    {
        #region api
        public static IReadOnlyDictionary<string, int> Count(string text)
        {
            var counts = new Dictionary<string, int>(StringComparer.OrdinalIgnoreCase);
            foreach (var word in text.Split(new[] { ' ', '\t', '\n' }, StringSplitOptions.RemoveEmptyEntries))
            {
                counts[word] = counts.TryGetValue(word, out var n) ? n + 1 : 1;
            }


            return counts;
        }
        #endregion

        private static readonly string Verbatim = @"C:\temp\""x""
  second line";

        public static string Top(string text, int k = 3) =>
            string.Join(", ", Count(text).OrderByDescending(p => p.Value).Take(k).Select(p => $"{p.Key}={p.Value}"));
    }
}
