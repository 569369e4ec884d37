document.getElementById("form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const text = document.getElementById("text").value;
  const response = await fetch("v1/translate", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ text }),
  });
  const answer = await response.json();
  const output = document.getElementById("translation");
  output.textContent = response.ok ? answer.translations[0].text : answer.error;
});
